// The members of a create that say how one reaches the VM: `network` and `forward`.
#pragma once

#include "base/json_fields.h"
#include "model/intent.h"

namespace vmonce::rest {

// Reads both into `intent`, whose `count` is set already. What is wrong is told to the reader.
void ReadNetwork(JsonReader& reader, model::CreateIntent& intent);

}  // namespace vmonce::rest
