"""``bpe report``: one HTML file about a tokenizer, counts, an encoded corpus, or a whole run."""

from pipelines.report.job import ReportSummary, report
from pipelines.report.page import Section

__all__ = ["ReportSummary", "Section", "report"]
