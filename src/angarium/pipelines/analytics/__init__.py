"""Analytics: what happens in topics, window by window, in figures.

`figures` computes them, over a range or as a stream; `outputs` writes them to a topic and a table;
`drawing` and `picture` draw them.
"""

from angarium.pipelines.analytics.analytics import analyse, analytics
from angarium.pipelines.analytics.figures import figures
from angarium.pipelines.jobs import Analytics

__all__ = ["Analytics", "analyse", "analytics", "figures"]
