// The commands of the bench program. Each measures one thing once and prints one line of JSON;
// bench/run puts them together.
#pragma once

#include "bench/arguments.h"

namespace vmonce::bench {

// `dir= seconds=`: 4 KiB appends with fdatasync a second.
void MeasureAppends(const Arguments& arguments);
// `dir= seconds=`: SQLite transactions of one row a second, WAL, synchronous=FULL.
void MeasureCommits(const Arguments& arguments);
// `dir= batch= count=`: creates a second that the SQLite ledger accepts from one caller.
void MeasureAccept(const Arguments& arguments);
// `dir= count= live=`: makes a ledger of so many finished creates, all but `live` deleted again.
void FillLedger(const Arguments& arguments);

// `port= path= connections= seconds=`: GETs a second.
void MeasureGet(const Arguments& arguments);
// `port= connections= seed= image=`, and `seconds=` or `count=`: creates a second, each with a key
// of its own. With `wait=` each is answered when it has ended.
void MeasureCreate(const Arguments& arguments);
// `port= connections= seed= image= keys= seconds=`: creates again with keys that were used before.
void MeasureReplay(const Arguments& arguments);
// `port= connections= seed= image= rounds=`: every connection sends one new create at once.
void MeasureStorm(const Arguments& arguments);
// `port= connections= seed= image= count=`: creates, until all of them are ready.
void MeasureLives(const Arguments& arguments);

}  // namespace vmonce::bench
