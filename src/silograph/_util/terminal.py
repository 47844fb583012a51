"""Texts that others may have written, made fit to be shown."""


def lines_of(text: str) -> list[str]:
    """The lines of a text as TOML counts them; by the eight more ends of `splitlines`, a comment shows as lines."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def visible(text: str, *, lines: bool = False) -> str:
    """A text that others may have written, without effect on a terminal: what cannot be seen is shown as its code.

    Line breaks and tabs are codes too, unless the text may have `lines`.
    """
    kept = "\n\t" if lines else ""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
