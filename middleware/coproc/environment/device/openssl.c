// AES-128 by OpenSSL, which selects its code by the instructions of the CPU.
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

static EVP_CIPHER_CTX *context;
static uint8_t expanded[16];  // the key of the context

static void check(int result, const char *call) {
  if (result == 1) return;
  fprintf(stderr, "%s failed\n", call);
  exit(1);
}

void engine_start(void) {
  context = EVP_CIPHER_CTX_new();
  check(EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), NULL, expanded, NULL), "EVP_EncryptInit_ex");
  check(EVP_CIPHER_CTX_set_padding(context, 0), "EVP_CIPHER_CTX_set_padding");
}

void engine_encrypt(const uint8_t key[16], uint8_t *blocks, size_t count) {
  int bytes = 0;
  // With the AES instructions, the expansion of the key takes a tenth of the time of 16 KiB.
  if (memcmp(key, expanded, sizeof expanded) != 0) {
    check(EVP_EncryptInit_ex(context, NULL, NULL, key, NULL), "EVP_EncryptInit_ex");
    memcpy(expanded, key, sizeof expanded);
  }
  check(EVP_EncryptUpdate(context, blocks, &bytes, blocks, (int)(16 * count)), "EVP_EncryptUpdate");
}

const char *engine_description(void) {
  static char text[256];
  const char *mask = getenv("OPENSSL_ia32cap");
  snprintf(text, sizeof text, "%s\tOPENSSL_ia32cap=%s", OpenSSL_version(OPENSSL_VERSION),
           mask == NULL ? "" : mask);
  return text;
}
