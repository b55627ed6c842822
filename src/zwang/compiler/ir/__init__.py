"""The expression graph and the program: their records, rules, verification and interpreter."""
