"""The folder of a run: what is asked, learned, written, resumed and read back."""
