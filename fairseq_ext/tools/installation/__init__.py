"""The commands about this installation: user-dir, list, doctor, run."""
