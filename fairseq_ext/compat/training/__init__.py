"""The loop of a training: devices, workers, precision, how it ends and goes on."""
