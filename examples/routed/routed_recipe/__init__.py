"""What the scripts of examples/routed share."""
