// The cipher of DDS Security. This is C because the library's header does not compile as C++.

#include "cipher.h"

#include <dds/security/core/dds_security_utils.h>

// The library has no function that returns the cipher of a connection. This one selects the cipher
// of its keys from the kind of protection and the property `keysize`, which the cell does not set.
const char* cipher_of_encryption(void) {
  switch (
      DDS_Security_protectionkind2transformationkind(NULL, DDS_SECURITY_PROTECTION_KIND_ENCRYPT)) {
    case CRYPTO_TRANSFORMATION_KIND_AES128_GCM:
      return "AES128-GCM";
    case CRYPTO_TRANSFORMATION_KIND_AES256_GCM:
      return "AES256-GCM";
    default:
      return "not told by the library";
  }
}
