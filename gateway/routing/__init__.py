"""Which deployment serves a call: the planner, its strategies, and the health it goes by. Pure code without I/O."""
