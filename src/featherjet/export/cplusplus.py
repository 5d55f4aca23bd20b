"""The C++ header of an export: arrays that know their length, and functions that take them."""

from __future__ import annotations

from .functions import Function, Package
from .header import comment, ctype, shown

VIEW = """\
/// N numbers that live elsewhere: in a std::array, an array, a std::span of that length, or behind a pointer.
template <class T, std::size_t N>
class View {
 public:
  using Number = std::remove_const_t<T>;

  explicit constexpr View(T *data) noexcept : data_(data) {}
  constexpr View(T (&x)[N]) noexcept : data_(x) {}
  constexpr View(std::array<Number, N> &x) noexcept : data_(x.data()) {}
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr View(const std::array<Number, N> &x) noexcept : data_(x.data()) {}
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr View(View<Number, N> x) noexcept : data_(x.data()) {}
#if defined(__cpp_lib_span)
  constexpr View(std::span<T, N> x) noexcept : data_(x.data()) {}
  constexpr operator std::span<T, N>() const noexcept { return std::span<T, N>(data_, N); }
#endif

  constexpr T *data() const noexcept { return data_; }
  static constexpr std::size_t size() noexcept { return N; }
  constexpr T &operator[](std::size_t k) const noexcept { return data_[k]; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + N; }

 private:
  T *data_;
};
"""


def cplusplus(package: Package) -> str:
    name, upper = package.name, package.name.upper()
    return "\n".join(
        [
            "#pragma once",
            f"// C++17 and later: the functions of {name}.h, which describes them, on arrays that know their length.",
            "",
            "#include <array>",
            "#include <cstddef>",
            "#include <cstdint>",
            "#include <type_traits>",
            "#if __has_include(<span>) && __cplusplus >= 202002L",
            "#include <span>",
            "#endif",
            "",
            f'#include "{name}.h"',
            "",
            f"namespace {name} {{",
            "",
            f"using Number = {ctype(package)};",
            f"inline constexpr std::size_t nq = {upper}_NQ, nv = {upper}_NV, joints = {upper}_JOINTS;",
            "",
            VIEW,
            "/// Memory that suffices for every function; one for each thread.",
            "class Workspace {",
            " public:",
            "  void *data() noexcept { return bytes_; }",
            "",
            " private:",
            f"  alignas(64) unsigned char bytes_[{upper}_WORKSPACE];",
            "};",
            "",
            *(line for f in package.functions for line in functions(package, f)),
            f"}}  // namespace {name}",
            "",
        ]
    )


def functions(package: Package, f: Function) -> list[str]:
    """The functions of a quantity; both return the flags."""
    short = f.symbol.removeprefix(package.name + "_")
    arrays = [(x, "const Number") for x in f.passed] + [(x, "Number") for x in f.outputs]
    views = ", ".join(f"View<{number}, {x.size}> {x.name}" for x, number in arrays)
    shapes = "; ".join(f"{x.name} {shown(x)}" for x, _ in arrays)
    lines = [
        f"/// {comment(f.record.summary)}. {shapes}.",
        f"inline int {short}({views}, Workspace &workspace) noexcept {{",
        f"  return ::{f.symbol}({', '.join(f'{x.name}.data()' for x, _ in arrays)}, workspace.data());",
        "}",
    ]
    if f.batch_workspace:
        pointers = ", ".join(f"{number} *{x.name}" for x, number in arrays)
        lines += [
            f"inline int {short}_batch(std::int64_t count, {pointers}, Workspace &workspace) noexcept {{",
            f"  return ::{f.symbol}_batch(count, {', '.join(x.name for x, _ in arrays)}, workspace.data());",
            "}",
        ]
    return [*lines, ""]
