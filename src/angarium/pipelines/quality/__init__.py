"""Quality: what a topic's records have to be like, which ones are not, and where those go.

`pipelines.expectations` turns what a file says into conditions in SQL; `quality` lets a stream or a
table meet them; `freshness` looks when a topic last got a record.
"""

from angarium.pipelines.expectations import Quality, quality_in
from angarium.pipelines.quality.quality import Met, check, freshness, quality, report_rows

__all__ = ["Met", "Quality", "check", "freshness", "quality", "quality_in", "report_rows"]
