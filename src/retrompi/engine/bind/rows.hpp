// Rows of unlike fields, as Python has them: tuples, read and made a field at a time. pybind11 converts nested containers of std::tuple
// as well, but each such type takes the compiler half a second and more.
#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "bind/ps.hpp"

namespace retrompi {

struct LinkSpec;
/// Of a dictionary with the keys of the declaration.
LinkSpec read_link(const pybind11::object& given);

/// The fields of one row, read from the first to the last.
class Fields {
 public:
  /// Raises TypeError, which names the rows, for what is no sequence of so many fields.
  Fields(pybind11::handle row, size_t count, const char* rows) : rows_(rows) {
    const bool fields = PySequence_Check(row.ptr()) != 0 && PyUnicode_Check(row.ptr()) == 0 && PyBytes_Check(row.ptr()) == 0;
    if (fields) row_ = pybind11::reinterpret_steal<pybind11::object>(PySequence_Fast(row.ptr(), ""));
    if (fields && !row_) throw pybind11::error_already_set();
    if (!fields || static_cast<size_t>(PySequence_Fast_GET_SIZE(row_.ptr())) != count)
      refuse(row, "is no row of " + std::to_string(count) + " fields");
  }
  /// Raises TypeError if the next field is none of that type.
  template <class T>
  T next() {
    const pybind11::handle field = next_field();
    pybind11::detail::make_caster<T> value;
    if (!value.load(field, true)) refuse(field, "does not fit");
    return pybind11::detail::cast_op<T>(std::move(value));
  }
  /// Of a field that may be None.
  template <class T>
  std::optional<T> next_if_any() {
    if (pybind11::handle(PySequence_Fast_GET_ITEM(row_.ptr(), read_)).is_none()) {
      ++read_;
      return std::nullopt;
    }
    return next<T>();
  }
  pybind11::handle next_field() { return PySequence_Fast_GET_ITEM(row_.ptr(), read_++); }

 private:
  [[noreturn]] void refuse(pybind11::handle value, const std::string& why) const {
    std::string shown = pybind11::repr(value);
    if (shown.size() > 60) shown.replace(60, std::string::npos, "...");
    throw pybind11::type_error(std::string(rows_) + ": " + shown + " of type " + Py_TYPE(value.ptr())->tp_name + " " + why);
  }
  const char* rows_;
  pybind11::object row_;
  Py_ssize_t read_ = 0;
};

/// A field of a row that is made.
class Field : public pybind11::object {
 public:
  Field(pybind11::object o) : object(std::move(o)) {}  // NOLINT: a row is written as a list of its fields
  Field(bool b) : object(pybind11::bool_(b)) {}        // NOLINT
  template <std::integral N>
  Field(N n) : object(pybind11::int_(n)) {}                                          // NOLINT
  Field(Ps ps) : object(pybind11::int_(ps.count())) {}                               // NOLINT
  Field(double x) : object(pybind11::float_(x)) {}                                   // NOLINT
  Field(const char* text) : object(pybind11::str(text)) {}                           // NOLINT
  Field(const std::string& text) : object(pybind11::str(text)) {}                    // NOLINT
  Field(std::string_view text) : object(pybind11::str(text.data(), text.size())) {}  // NOLINT
};

inline pybind11::tuple row_of(std::initializer_list<Field> fields) {
  pybind11::tuple row(fields.size());
  Py_ssize_t i = 0;
  for (const Field& f : fields) PyTuple_SET_ITEM(row.ptr(), i++, f.inc_ref().ptr());
  return row;
}

}  // namespace retrompi
