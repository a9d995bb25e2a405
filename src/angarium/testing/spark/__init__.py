"""A real Spark cluster on one machine, from the wheel, whose processes a test may kill.

`standalone` runs master and workers, `copying` is the driver of a query between two topics, and
`chaos` kills all of them, brokers included, while the query works. `make chaos-spark` runs it.
"""
