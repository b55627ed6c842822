"""From q and v to where everything is and how it moves."""
