"""`silograph federation`: found a federation, sign requests, host the server, run a study."""
