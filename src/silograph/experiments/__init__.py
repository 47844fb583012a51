"""The paper's tables and figures, computed anew and set beside the printed numbers; `silograph reproduce` runs them."""
