"""Analysis of states: the mechanics functions on floats, contacts, reactions, tasks, equilibria."""
