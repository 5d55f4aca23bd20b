"""Code of a robot for programs without Python: objects, headers, and what else a C or C++ project needs."""
