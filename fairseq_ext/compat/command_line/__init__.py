"""What the commands of fairseq do with their options, their input and their output."""
