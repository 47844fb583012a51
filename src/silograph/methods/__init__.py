"""The methods: each a silo's half, `local`, and a coordinator's half, `merge`. One loop runs them all."""
