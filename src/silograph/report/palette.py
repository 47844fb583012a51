"""The colours of the page and of every figure: red is an edge of the consensus, blue and dashed one silo's own."""

RED = "#b2182b"
BLUE = "#2166ac"
OWN_DASH = (0, (2, 1))  # in units of a line's width, as Matplotlib takes it
INK = "#1d2733"
SOFT = "#5b6673"  # what is said aside, and edges where nothing is shared
OUTLINE = "#c3c9d1"  # of a head


def css_variables() -> str:
    """The colours for the page's style, from which its scripts take them."""
    colours = {"red": RED, "blue": BLUE, "ink": INK, "soft": SOFT, "outline": OUTLINE}
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
