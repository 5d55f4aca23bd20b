"""Pictures and a browser page: plots of derivative matrices and motions, and the viewer."""
