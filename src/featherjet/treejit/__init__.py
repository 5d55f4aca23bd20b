"""Compiles quantities of trees, as loops over bodies that robots share or as straight-line code for one."""
