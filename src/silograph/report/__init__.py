"""A run as pictures: one HTML page that opens offline, and figures for a paper, from the same numbers.

from silograph.report import write_figures, write_report
write_report(Path("run"))                                  # run/report.html
write_figures(Path("run"), Path("figures"), formats=("svg", "pdf"))
"""

from silograph.report.figures import write_figures
from silograph.report.page import write_report

__all__ = ["write_figures", "write_report"]
