// SHA-256 of a string (FIPS 180-4): a run must be able to name the configuration file that it used.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace sha256_detail {

inline uint32_t rotate(uint32_t value, int bits) {
  return (value >> bits) | (value << (32 - bits));
}

// The first 32 bits of the fractional part of a prime's square (power 2) or cube root (power 3):
// the standard defines its constants so, and bisection on integers is exact.
inline uint32_t root_fraction(unsigned prime, int power) {
  const unsigned __int128 target = static_cast<unsigned __int128>(prime) << (32 * power);
  uint64_t low = 0;
  uint64_t high = uint64_t{1} << 40;
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    unsigned __int128 product = middle;
    for (int factor = 1; factor < power; ++factor) product *= middle;
    (product <= target ? low : high) = middle;
  }
  return static_cast<uint32_t>(low);
}

inline std::array<unsigned, 64> first_primes() {
  std::array<unsigned, 64> primes{};
  size_t count = 0;
  for (unsigned candidate = 2; count < primes.size(); ++candidate) {
    bool prime = true;
    for (size_t i = 0; i < count && prime; ++i) prime = candidate % primes[i] != 0;
    if (prime) primes[count++] = candidate;
  }
  return primes;
}

}  // namespace sha256_detail

inline std::string sha256_hex(std::string message) {
  using sha256_detail::rotate;
  const auto primes = sha256_detail::first_primes();
  std::array<uint32_t, 8> state{};
  for (size_t i = 0; i < 8; ++i) state[i] = sha256_detail::root_fraction(primes[i], 2);
  std::array<uint32_t, 64> constants{};
  for (size_t i = 0; i < 64; ++i) constants[i] = sha256_detail::root_fraction(primes[i], 3);

  const uint64_t bits = message.size() * 8;
  message.push_back(static_cast<char>(0x80));
  while (message.size() % 64 != 56) message.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) message.push_back(static_cast<char>(bits >> shift));

  for (size_t block = 0; block < message.size(); block += 64) {
    std::array<uint32_t, 64> words{};
    for (size_t i = 0; i < 64; ++i) {
      words[i / 4] = words[i / 4] << 8 | static_cast<uint8_t>(message[block + i]);
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = words[i - 15];
      const uint32_t b = words[i - 2];
      words[i] = words[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + words[i - 7] +
                 (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                             ((e & f) ^ (~e & g)) + constants[i] + words[i];
      const uint32_t second =
          (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const std::array<uint32_t, 8> after{a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += after[i];
  }
  std::string hex;
  for (uint32_t word : state) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", word);
    hex += digits;
  }
  return hex;
}
