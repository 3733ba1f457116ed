"""What is particular to the recipe that compares twin networks with other regularisers."""
