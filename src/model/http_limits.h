// Bounds on what clients of the HTTP server may hold, beside those of limits.h.
#pragma once

#include <chrono>
#include <cstddef>

namespace vmonce::model::limits {

// Files kept for the ledger, libvirt and guests when the system allows few.
inline constexpr std::size_t kHttpFilesKept = 512;
// One in ten: ten clients that misbehave leave no room, one does.
inline constexpr std::size_t kHttpConnectionsPerAddress = 1'000;
// Each holds about 50 KiB while it lasts; honest ones last a few round trips.
inline constexpr std::size_t kHttpHandshakes = 512;
inline constexpr std::chrono::seconds kHttpHandshakeTimeout{10};
// Of a client's PEM file; a bundle of all public authorities has 220 KiB.
inline constexpr std::size_t kClientPemBytes = 4 << 20;
// Renewals happen a month before the end; two weeks before it, something is wrong.
inline constexpr std::chrono::hours kCertificateWarning{14 * 24};

}  // namespace vmonce::model::limits
