// Seals secrets that must be kept for a while (user data until a machine is ready): AES-256-GCM
// under the server's key file. A sealed text is: version byte, 12-byte nonce, ciphertext, 16-byte
// tag.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"
#include "base/sha256.h"

namespace vmonce {

// Thread-safe. `random` outlives it.
class Sealer {
 public:
  // `key` is exactly 32 bytes.
  Sealer(std::string key, Random& random);

  // `context` is authenticated and not stored (the operation id): a sealed text moved to another
  // row does not open.
  std::string Seal(std::string_view plain, std::string_view context) const;
  // kInvalid when the text was not sealed under this key and context.
  Result<std::string> Open(std::string_view sealed, std::string_view context) const;

  // What stands for a secret where it is compared but not kept; the key is derived, apart from the
  // sealing key.
  Digest Mac(std::string_view secret) const;

 private:
  std::string seal_key_;
  std::string mac_key_;
  Random& random_;
};

// Reads the 32-byte key at `path`. kNotFound: there is no file. A file that others can read, that
// another user but root owns, or of another size, is kInvalid.
Result<std::string> ReadKeyFile(const std::string& path);

// The same, but a missing one is made, with mode 0600 and on disk; of several processes that come
// at once, all get the one key. A bad file is never replaced: with it every sealed row would be
// lost.
Result<std::string> LoadOrCreateKeyFile(const std::string& path, Random& random);

}  // namespace vmonce
