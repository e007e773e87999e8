// Encrypts blocks for test_cpp_encryption.py: reads pairs of key and block, writes ciphertexts.
#include <cstdio>

#include "wattwire/aes128.hpp"

int main() {
  uint8_t pair[32];
  while (std::fread(pair, sizeof pair, 1, stdin) == 1) {
    wattwire::Aes128(pair).encrypt(pair + 16);
    std::fwrite(pair + 16, 16, 1, stdout);
  }
}
