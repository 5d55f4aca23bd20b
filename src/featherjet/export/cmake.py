"""The CMake file of an export."""

from __future__ import annotations

from .functions import Package


def cmake(package: Package) -> str:
    name = package.name
    return f"""\
# add_subdirectory(this folder), then target_link_libraries(your_program PRIVATE {name})
cmake_minimum_required(VERSION 3.13)
project({name} C)

add_library({name} INTERFACE)
target_include_directories({name} INTERFACE "${{CMAKE_CURRENT_SOURCE_DIR}}")
target_link_libraries({name} INTERFACE "${{CMAKE_CURRENT_SOURCE_DIR}}/{name}.o")

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  add_executable({name}_example {name}_example.c)
  target_link_libraries({name}_example PRIVATE {name})
  enable_testing()
  add_test(NAME {name}_example COMMAND {name}_example)
endif()
"""
