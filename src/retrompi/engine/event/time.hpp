// Simulated time.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace retrompi {

/// A time or an amount has left the range of 64 bits: an outcome, not a defect.
struct Overflow : std::exception {
  explicit Overflow(std::string why) : reason(std::move(why)) {}
  [[nodiscard]] const char* what() const noexcept override { return reason.c_str(); }
  std::string reason;
};

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void overflowed(double seconds) {
  char text[128];
  std::snprintf(text, sizeof text, "a time of %.4g s cannot be counted: 106 days (2^63 ps) is the longest", seconds);
  throw Overflow(text);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void overflowed_sum(double a, double b) {
  char text[128];
  std::snprintf(text, sizeof text, "an amount of %.4g B cannot be counted: 2^62 is the most", a + b);
  throw Overflow(text);
}
}  // namespace detail

/// Simulated time in picoseconds. An integer, so that the stages of a message sum to its total exactly
/// (a double loses picoseconds after a quarter of an hour) and the same inputs give the same bytes.
///
/// No operation wraps: a sum, a product or a conversion that leaves the 64 bits (106 days) throws Overflow. It is one addition and a
/// branch that is never taken (`seto` and a jump), and what it throws is out of line.
class Ps {
 public:
  constexpr Ps() = default;
  template <std::integral N>
  constexpr Ps(N n) : n_(static_cast<int64_t>(n)) {  // NOLINT: whole numbers are picoseconds
    if (!std::in_range<int64_t>(n)) detail::overflowed(static_cast<double>(n) / 1e12);
  }
  template <std::floating_point F>
  explicit constexpr Ps(F ps) : n_(0) {
    // 2^63 itself is outside, and a comparison with NaN is false.
    if (!(ps > -0x1p63 && ps < 0x1p63)) detail::overflowed(static_cast<double>(ps) / 1e12);
    n_ = static_cast<int64_t>(ps);
  }
  [[nodiscard]] constexpr int64_t count() const { return n_; }
  explicit constexpr operator double() const { return static_cast<double>(n_); }
  explicit constexpr operator int64_t() const { return n_; }
  explicit constexpr operator uint64_t() const { return static_cast<uint64_t>(n_); }

  friend constexpr auto operator<=>(Ps, Ps) = default;
  friend constexpr Ps operator+(Ps a, Ps b) {
    int64_t n = 0;
    if (__builtin_add_overflow(a.n_, b.n_, &n)) detail::overflowed(static_cast<double>(a.n_) / 1e12 + static_cast<double>(b.n_) / 1e12);
    return n;
  }
  friend constexpr Ps operator-(Ps a, Ps b) {
    int64_t n = 0;
    if (__builtin_sub_overflow(a.n_, b.n_, &n)) detail::overflowed(static_cast<double>(a.n_) / 1e12 - static_cast<double>(b.n_) / 1e12);
    return n;
  }
  friend constexpr Ps operator-(Ps a) { return Ps{} - a; }
  template <std::integral N>
  friend constexpr Ps operator*(Ps a, N times) {
    int64_t n = 0;
    if (__builtin_mul_overflow(a.n_, times, &n)) detail::overflowed(static_cast<double>(a.n_) / 1e12 * static_cast<double>(times));
    return n;
  }
  template <std::integral N>
  friend constexpr Ps operator*(N times, Ps a) {
    return a * times;
  }
  template <std::integral N>
  friend constexpr Ps operator/(Ps a, N parts) {
    return a.n_ / static_cast<int64_t>(parts);
  }
  friend constexpr int64_t operator/(Ps a, Ps b) { return a.n_ / b.n_; }
  friend constexpr Ps operator%(Ps a, Ps b) { return a.n_ % b.n_; }
  constexpr Ps& operator+=(Ps b) { return *this = *this + b; }
  constexpr Ps& operator-=(Ps b) { return *this = *this - b; }
  template <std::integral N>
  constexpr Ps& operator*=(N times) {
    return *this = *this * times;
  }

 private:
  int64_t n_ = 0;
};

constexpr Ps kNever = INT64_MAX;
constexpr double kPsPerSecond = 1e12;

/// Throws Overflow for what cannot be counted, a NaN included.
constexpr Ps to_ps(double seconds) { return Ps(seconds * kPsPerSecond + 0.5); }
/// When something is to happen: beyond the range means never.
constexpr Ps to_ps_or_never(double seconds) { return seconds * kPsPerSecond < 0x1p63 ? to_ps(seconds) : kNever; }
constexpr double to_s(Ps ps) { return static_cast<double>(ps) / kPsPerSecond; }

/// A sum of bytes, of two that are not negative; throws Overflow beyond 2^62, so that what is computed from it (a window, a rounding)
/// stays within the 64 bits as well.
[[nodiscard]] constexpr int64_t checked_sum(int64_t a, int64_t b) {
  int64_t n = 0;
  if (__builtin_add_overflow(a, b, &n) || n > int64_t{1} << 62) detail::overflowed_sum(static_cast<double>(a), static_cast<double>(b));
  return n;
}

}  // namespace retrompi
