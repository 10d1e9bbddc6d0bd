"""``bpe report``: one HTML file about a tokenizer, counts, an encoded corpus, or a whole run."""

from pipelines.report.job import ReportSummary, report

__all__ = ["ReportSummary", "report"]
