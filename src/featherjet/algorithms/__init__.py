"""Layer 3: one file per algorithm, pure functions of a Scan, each line traceable to an equation. They know no backend.

References, by the keys used in docstrings:
[IDSVA]  Singh, Russell, Wensing: Efficient Analytical Derivatives of Rigid-Body Dynamics using SVA, 2021
[RSS18]  Carpentier, Mansard: Analytical Derivatives of Rigid Body Dynamics Algorithms, RSS 2018
[BP]     Guenter, Rose: Balafoutis-Patel inverse dynamics and its partials, 2000
[KINDR]  Gehring et al.: kindr cheat sheet
[RBDA]   Featherstone: Rigid Body Dynamics Algorithms, 2008
"""
