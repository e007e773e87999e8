#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Returns the cipher that the library uses for the kind of protection ENCRYPT.
const char* cipher_of_encryption(void);

#ifdef __cplusplus
}
#endif
