"""`clearhead bench`: training, decoding and start-up measured on this machine, in turns with other implementations."""
