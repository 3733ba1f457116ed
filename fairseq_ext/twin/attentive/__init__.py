"""What recogniser and captioners share: an LSTM with additive attention, and its decoders."""
