"""The random number generators of T.rng_init: private variables of a thread, and the statements that step them."""
