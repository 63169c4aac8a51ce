/* How one create becomes one machine, and a delete none: claim, lease, unknown outcome and take-over, as two workers of
 * one serving process run them over one host that answers late or never. docs/model.md says what stands for what, and
 * what is left out. Sections (§) are those of the protocol.
 *
 * model/check runs it: the model as it is, which must hold, and wrong ones (WRONG_...), each of which must be found
 * out. Where REACHED stands, the run tells that the place is reached: a rule that nothing comes to proves nothing. */

/* So many faults at any moments, one crash among them at most: a lease runs out although its holder lives; the process
 * is killed; a call is given up at its deadline, or its reply is lost; a start fails, or a try was the last; a COMMIT
 * fails, with the rows written or not. */
#ifndef FAULTS
#define FAULTS 3
#endif
/* Tells once that a place is reached at all; no part of the state. */
c_decl {
\#include <stdio.h>
static char told[64];
}
#define REACHED(n, what) c_code { if (!told[n]) { told[n] = 1; printf("reached: %s\n", what); } }

/* ---- The ledger: two operations about one VM. */

#define CREATE 0
#define DELETE 1
#define NOBODY 2

#define NEW 0 /* Not accepted. */
#define OPEN 1
#define SUCCEEDED 2
#define FAILED 3
#define CANCELLED 4

#define CREATING 0 /* `pending` is not told from it. */
#define READY 1
#define BROKEN 2 /* The VM's state `failed`. */
#define DELETING 3
#define DELETED 4

#define NOWHERE 0
#define HERE 1  /* The host that is modelled. */
#define THERE 2 /* Another one, on which everything works at once. */

typedef Operation {
  byte state;
  bit is_held;      /* By this process: its workers share one name. Else `unleased`. */
  bit is_abandoned; /* Its holder is dead or gone: nobody renews the lease or gives it back. */
  byte lapsed;      /* The lease ran out: 1 before the crash, 2 after it. */
  byte fence;
  /* The item. */
  byte step;
  bit is_undoing;
  bit look_first;
  byte unsettled; /* The settle time has not passed: 1 it began before the crash, 2 after it. */
  byte calls_of;  /* Released with a call out: 1 of this process, 2 of one that has died since. */
  bit awaits;     /* Nothing to do before every earlier call has ended. */
};

Operation ops[2];
byte vm = CREATING;
byte host = NOWHERE;
byte hold = NOBODY; /* §10: two operations on one VM never run together. */
bit is_second_attempt;
bit may_pass; /* The create's failure: a new attempt is possible. */
byte claims, sent;

/* ---- The host: one domain of that UUID, and the calls that are out. */

#define ABSENT 0
#define DEFINED 1
#define RUNS 2
#define TRANSIENT 3 /* Runs, and was undefined meanwhile. */
#define STRANGER 4  /* Of this UUID, and not ours. */

byte dom = ABSENT;
byte label;    /* The fence in the domain's label. */
bit elsewhere; /* A machine of this VM runs on the other host. */
bit is_stranger_touched;

#define NONE 0
#define DEFINE 1
#define START 2
#define DESTROY 3
#define UNDEFINE 4

#define GIVEN_UP 3 /* Its caller waits no more, and its process lives. */
#define ORPHAN 4   /* Its process died. */

typedef Call {
  byte kind;
  byte fence;
  byte caller; /* A thread that waits for it, GIVEN_UP or ORPHAN. */
  bit begun;   /* START: the hypervisor is at it. */
  byte reply;  /* 0 none yet, 1 done, 2 failed. */
};
/* §9: bounded calls a host; when none is free, `unavailable` at once. */
Call calls[2];

byte faults = FAULTS;
bit has_crashed;

/* ---- The workers, two threads of the serving process. */

#define IDLE 0
#define BEFORE_EFFECT 1 /* It may pause here, longer than its lease. */
#define IN_CALL 2
#define BEFORE_LOOK 3
#define BEFORE_WRITE 4 /* It may pause here, too. */
#define ADVANCE 5      /* Never between two of its moves. */

typedef Thread {
  byte at;
  byte o; /* The operation. */
  byte fence;
  byte step;
  bit is_undoing;
  bit look_first;
  byte effect;
  byte call;  /* Which of `calls`. */
  byte write; /* What it is about to record. */
};
Thread threads[3];

#define IsOut(i) (calls[i].kind != NONE && calls[i].caller != ORPHAN)
#ifdef WRONG_ONLY_GIVEN_UP_CALLS_COUNT
#define CallsOut (calls[0].caller == GIVEN_UP || calls[1].caller == GIVEN_UP)
#else
#define CallsOut (IsOut(0) || IsOut(1))
#endif
#define AnyOrphan (calls[0].caller == ORPHAN || calls[1].caller == ORPHAN)

/* §9: absence is believed only after every earlier unknown call has returned or, where its process died, after the
 * settle time. */
#ifdef WRONG_NO_WAIT_FOR_CALLS
#define NoneOut true
#else
#define NoneOut (!CallsOut)
#endif
#ifdef WRONG_NO_SETTLE_TIME
#define IsSettled(o) (NoneOut)
#else
#define IsSettled(o) (NoneOut && ops[o].unsettled == 0)
#endif
#ifdef WRONG_DELETE_FORGETS_THE_CREATE
#define IsAllSettled IsSettled(DELETE)
#else
#define IsAllSettled (IsSettled(DELETE) && IsSettled(CREATE))
#endif

#define It threads[me]
#define Op ops[It.o]

/* §8 and model/lease.h: an operation accepted later is above every take-over of an earlier one. */
#define EffectFence(o, f) ((o) * 8 + (f))
/* The lease as its holder sees it: never later than the ledger does. */
#define IsMine (Op.is_held && Op.fence == It.fence && Op.lapsed == 0)

/* ---- What must never be. */

#define Found (host == HERE && Exists)
#define Exists (dom == DEFINED || dom == RUNS || dom == TRANSIENT)
#define IsRunning (dom == RUNS || dom == TRANSIENT)

/* §1: one machine for one key. What is left on a host that was proven empty would be a second one. */
#define OneMachine (!(Exists && elsewhere) && !(host == THERE && Exists) && !(host == HERE && elsewhere) && claims <= 1)
/* §6: deleted stays deleted; a failed create leaves nothing. */
#define NoResurrection (!((vm == DELETED || vm == BROKEN) && (Exists || elsewhere)))
/* §6: what was told as ready is there until somebody asks for its end. */
#define NothingLost (vm != READY || IsRunning || elsewhere)
#define StrangersAreLeftAlone (!is_stranger_touched)

active proctype Never() {
end: atomic {
    !(OneMachine && NoResurrection && NothingLost && StrangersAreLeftAlone) ->
    assert(OneMachine);
    assert(NoResurrection);
    assert(NothingLost);
    assert(StrangersAreLeftAlone);
  }
}

/* ---- The clients. */

/* §5, step 8: one transaction; the key's unique index decides. */
inline Claim() {
#ifdef WRONG_CLAIM_LOOKS_THEN_INSERTS
  if
  :: atomic { ops[CREATE].state == NEW -> skip };
     atomic { claims++; ops[CREATE].state = OPEN; ops[CREATE].look_first = 1; hold = CREATE }
  :: atomic { ops[CREATE].state != NEW -> skip }
  fi
#else
  atomic {
    if
    :: ops[CREATE].state == NEW -> claims++; ops[CREATE].state = OPEN; ops[CREATE].look_first = 1; hold = CREATE
    :: else -> REACHED(1, "the same create comes a second time")
    fi
  }
#endif
}

proctype Send() { Claim(); sent++ }

/* After a failure that may pass somebody may send the create again (§6: a new attempt of the same operation). At any
 * time somebody may ask for the end of the VM (§10: the delete marks the VM first). */
proctype Client() {
  if
  :: atomic {
       vm == BROKEN && may_pass && ops[DELETE].state == NEW ->
       /* ledger/revive.cc */
       ops[CREATE].state = OPEN; ops[CREATE].look_first = 1; vm = CREATING; is_second_attempt = 1;
#ifndef WRONG_SECOND_ATTEMPT_WITHOUT_HOLD
       hold = CREATE
#endif
     }
  :: true
  fi;
  if
  :: atomic {
       true ->
       if
       :: (calls[0].kind == START || calls[1].kind == START) && ops[CREATE].state == OPEN ->
          REACHED(2, "a delete arrives while the create's start is out")
       :: else
       fi;
       ops[DELETE].state = OPEN; vm = DELETING
     }
  :: true
  fi
}

/* ---- The host, and time. */

inline Apply(i) {
  if
  :: calls[i].kind == DEFINE ->
     /* libvirt's define is an upsert of the same UUID (tried). */
     if
     :: dom == STRANGER -> is_stranger_touched = 1
     :: dom == ABSENT -> dom = DEFINED
     :: dom == TRANSIENT -> dom = RUNS
     :: else
     fi;
     label = calls[i].fence; calls[i].reply = 1
  :: calls[i].kind == START && !calls[i].begun ->
     if
     :: dom == DEFINED -> calls[i].begun = 1
     :: dom == STRANGER -> is_stranger_touched = 1; calls[i].reply = 1
     :: IsRunning -> calls[i].reply = 1
     :: dom == ABSENT -> calls[i].reply = 2
     fi
  :: calls[i].kind == START && calls[i].begun ->
     /* Undefined during a start, the machine runs all the same (tried). */
     if
     :: dom == ABSENT -> dom = TRANSIENT; calls[i].reply = 1;
        REACHED(3, "a start ends after its domain was undefined")
     :: dom == DEFINED -> dom = RUNS; calls[i].reply = 1
     :: dom == DEFINED && faults > 0 -> faults--; calls[i].reply = 2
     :: dom != ABSENT && dom != DEFINED -> calls[i].reply = 1
     fi
  :: calls[i].kind == DESTROY ->
     if
     :: dom == RUNS -> dom = DEFINED
     :: dom == TRANSIENT -> dom = ABSENT; label = 0
     :: dom == STRANGER -> is_stranger_touched = 1
     :: else
     fi;
     calls[i].reply = 1
  :: calls[i].kind == UNDEFINE ->
     if
     :: dom == RUNS -> dom = TRANSIENT;
        REACHED(4, "an undefine meets a machine that has begun to run")
     :: dom == DEFINED -> dom = ABSENT; label = 0
     :: dom == STRANGER -> is_stranger_touched = 1
     :: else
     fi;
     calls[i].reply = 1
  fi
}

inline Free(i) { calls[i].kind = NONE; calls[i].fence = 0; calls[i].caller = 0; calls[i].begun = 0; calls[i].reply = 0 }

/* A call takes effect at some time after it was begun; nobody's reply is dropped. What a dead process asked for may
 * never arrive. */
inline Serve(i) {
  calls[i].kind != NONE && calls[i].reply == 0 ->
  if
  :: calls[i].caller == ORPHAN -> Free(i)
  :: true ->
     if
     :: calls[i].caller == ORPHAN && ops[CREATE].fence > calls[i].fence ->
        REACHED(5, "a call of the dead process takes effect late")
     :: calls[i].caller == ORPHAN && vm == READY ->
        REACHED(6, "a call of the dead process takes effect after `ready`")
     :: (calls[i].caller == 1 || calls[i].caller == 2) && calls[i].fence < 8 && ops[CREATE].fence > calls[i].fence ->
        REACHED(7, "a late call of a stale worker takes effect after the take-over")
     :: else
     fi;
     Apply(i);
     if
     :: calls[i].reply != 0 && calls[i].caller >= GIVEN_UP -> Free(i)
     :: else
     fi
  fi
}

active proctype Host() {
end: do
  :: atomic { Serve(0) }
  :: atomic { Serve(1) }
  od
}

#define MayLapse(o) (ops[o].is_held && ops[o].lapsed == 0 && (ops[o].is_abandoned || faults > 0))

inline Lapse(o) {
  MayLapse(o) ->
  if
  :: ops[o].is_abandoned
  :: else -> faults--
  fi;
  ops[o].lapsed = (has_crashed -> 2 : 1)
}

/* The settle time is the longest that a call of a dead process may still take effect. */
inline Settle(o) {
  ops[o].unsettled == 1 || (ops[o].unsettled == 2 && !AnyOrphan) -> ops[o].unsettled = 0
}

inline Orphan(i) {
  if
  :: calls[i].kind != NONE && calls[i].reply == 0 -> calls[i].caller = ORPHAN
  :: calls[i].reply != 0 -> Free(i)
  :: else
  fi
}

inline Forget(i) {
  threads[i].at = IDLE; threads[i].o = 0; threads[i].fence = 0; threads[i].step = 0; threads[i].is_undoing = 0;
  threads[i].look_first = 0; threads[i].effect = NONE; threads[i].call = 0; threads[i].write = 0
}

inline Bereave(o) {
  if
  :: ops[o].is_held -> ops[o].is_abandoned = 1
  :: else
  fi;
  if
  :: ops[o].calls_of == 1 -> ops[o].calls_of = 2
  :: else
  fi
}

active proctype Time() {
end: do
#ifndef WRONG_LEASES_NEVER_END
  :: atomic { Lapse(CREATE) }
#endif
  :: atomic { Lapse(DELETE) }
  :: atomic { Settle(CREATE) }
  :: atomic { Settle(DELETE) }
  :: atomic {
       faults > 0 && !has_crashed ->
       faults--; has_crashed = 1;
       Orphan(0); Orphan(1); Bereave(CREATE); Bereave(DELETE); Forget(1); Forget(2)
     }
  od
}

/* ---- What a worker does. */

/* How a call ended. */
#define DONE 1
#define UNKNOWN 2
#define UNAVAILABLE 3
#define FENCED 4
#define CONFLICT 5
#define WAITING 6

/* The steps of a create, undone backwards. */
#define PLACE 0
#define DEFINING 1
#define STARTING 2
#define PUBLISH 3
#define UNDONE 9
/* Those of a delete. */
#define HOLD 0
#define STOPPING 1
#define UNDEFINING 2
#define VERIFY 3
#define PUBLISH_DELETE 4

/* What is written. */
#define PLACED_HERE 1
#define PLACED_THERE 2
#define STEP_DONE 3
#define UNDO_STEP 4 /* Also the beginning of an undo, and the steps of a delete. */
#define UNPLACED 5
#define READIED 6
#define GAVE_UP 7
#define CANCEL 8
#define HELD 9
#define REMOVED 10
#define RELEASE 11
#define RELEASE_TO_WAIT 12 /* Nothing is to be done before every earlier call has ended and nobody else holds the VM. */

#ifdef WRONG_NO_GUARD_BESIDE_EFFECTS
#define InTime true
#define IsAhead false
#else
#define InTime IsMine
#define IsAhead (Exists && label > EffectFence(It.o, It.fence))
#endif
#ifdef WRONG_NO_LOOK_BEFORE_DEFINE
#define IsInTheWay (dom == STRANGER && It.effect != DEFINE)
#else
#define IsInTheWay (dom == STRANGER)
#endif
#ifdef WRONG_LEDGER_IGNORES_THE_FENCE
#define MayWrite (Op.state == OPEN)
#else
#define MayWrite (Op.state == OPEN && Op.is_held && Op.fence == It.fence)
#endif
#ifdef WRONG_RECORDS_OVER_THE_MARK
#define IsMarked false
#else
#define IsMarked (It.o == CREATE && ops[DELETE].state != NEW)
#endif

/* What is only waited for is not modelled as asking again and again. */
#define IsDue(which)                                                                  \
  (ops[which].state == OPEN && (!ops[which].is_held || ops[which].lapsed != 0) &&     \
   (ops[which].is_held || !ops[which].awaits || (which == CREATE && IsSettled(CREATE)) || \
    (which == DELETE && IsAllSettled && hold != CREATE)))

/* §10 and ledger/advance.cc, TakeDue. A lease that ran out may have left a call out: look first, and distrust absence
 * until the settle time has passed. So does a release with a call out whose process has died since. */
inline Take() {
  if
  :: IsDue(CREATE) -> It.o = CREATE
  :: IsDue(DELETE) -> It.o = DELETE
  fi;
  if
  :: Op.is_held ->
     if
     :: !Op.is_abandoned -> REACHED(12, "the lease of a living worker is taken over")
     :: else
     fi;
     Op.look_first = 1;
#ifdef WRONG_SETTLE_COUNTS_FROM_THE_LEASE
     Op.unsettled = Op.lapsed;
#else
     Op.unsettled = (has_crashed -> 2 : 1);
#endif
#ifndef WRONG_FENCE_STAYS
     Op.fence++
#endif
  :: else ->
     if
     :: Op.calls_of == 2 -> Op.look_first = 1; Op.unsettled = 2;
        REACHED(13, "work is taken whose call was left out by a dead process")
     :: else
     fi
  fi;
  Op.is_held = 1; Op.is_abandoned = 0; Op.lapsed = 0; Op.awaits = 0; Op.calls_of = 0;
  It.fence = Op.fence; It.step = Op.step; It.is_undoing = Op.is_undoing; It.look_first = Op.look_first;
  It.at = ADVANCE
}

/* Drops everything; what it may still hold is not renewed. */
inline Drop() {
  if
  :: Op.is_held && Op.fence == It.fence -> Op.is_abandoned = 1
  :: else
  fi;
  Forget(me)
}

/* engine/run.cc, Record: the deadline is looked at; then the worker may pause. */
inline Write(what) {
  if
  :: IsMine -> It.write = what; It.at = BEFORE_WRITE
  :: else -> Drop()
  fi
}

inline BeginUndo(passing) {
  may_pass = passing; It.is_undoing = 1; It.look_first = 0; It.step = STARTING;
  Write(UNDO_STEP)
}

/* engine/run.cc, Undo: no effect is taken back before every earlier call has ended. workflows/create_vm.cc, Unplace:
 * the host is left only after a typed not-found. */
inline Undo() {
  if
  :: !IsSettled(CREATE) -> REACHED(17, "an undo waits for earlier calls"); Write(RELEASE_TO_WAIT)
  :: IsSettled(CREATE) && It.step == STARTING -> It.effect = DESTROY; It.at = BEFORE_EFFECT
  :: IsSettled(CREATE) && It.step == DEFINING -> It.effect = UNDEFINE; It.at = BEFORE_EFFECT
  :: IsSettled(CREATE) && It.step == PLACE && Found -> It.step = STARTING; Write(RELEASE)
  :: IsSettled(CREATE) && It.step == PLACE && !Found -> It.step = UNDONE; Write(UNPLACED)
  :: IsSettled(CREATE) && It.step == UNDONE -> Write(GAVE_UP)
  fi
}

/* workflows/create_vm.cc: the steps. The host is recorded before the first effect on it (§8). */
inline Forward() {
  if
  :: It.step == PLACE -> It.step = DEFINING; Write(PLACED_HERE)
  :: It.step == PLACE && is_second_attempt && host == NOWHERE -> It.step = DEFINING; Write(PLACED_THERE)
  :: It.step == DEFINING -> It.effect = DEFINE; It.at = BEFORE_EFFECT
  :: It.step == STARTING -> It.effect = START; It.at = BEFORE_EFFECT
#ifndef WRONG_ENDS_WITH_A_CALL_OUT
  :: It.step == PUBLISH && CallsOut ->
     REACHED(22, "a create that is done waits for a call given up");
     Write(RELEASE_TO_WAIT)
  :: It.step == PUBLISH && !CallsOut -> Write(READIED)
#else
  :: It.step == PUBLISH -> Write(READIED)
#endif
  fi
}

/* workflows/delete_vm.cc: never gives up. */
inline Remove() {
  if
  :: It.step == HOLD && hold == CREATE ->
     REACHED(19, "a delete waits for the create to let go");
     Write(RELEASE_TO_WAIT)
  :: It.step == HOLD && hold != CREATE -> It.step = STOPPING; Write(HELD)
  :: It.step == STOPPING -> It.effect = DESTROY; It.at = BEFORE_EFFECT
  :: It.step == UNDEFINING -> It.effect = UNDEFINE; It.at = BEFORE_EFFECT
#ifdef WRONG_DELETE_DOES_NOT_VERIFY
  :: It.step == VERIFY -> It.step = PUBLISH_DELETE; Write(UNDO_STEP)
#else
  :: It.step == VERIFY && !IsAllSettled ->
     REACHED(20, "a delete waits for earlier calls");
     Write(RELEASE_TO_WAIT)
  :: It.step == VERIFY && IsAllSettled && (Found || elsewhere) -> It.step = HOLD;
     REACHED(21, "a deleted machine turns up again");
     Write(RELEASE)
  :: It.step == VERIFY && IsAllSettled && !Found && !elsewhere -> It.step = PUBLISH_DELETE; Write(UNDO_STEP)
#endif
  :: It.step == PUBLISH_DELETE -> Write(REMOVED)
  fi
}

/* engine/run.cc, Advance. §10: a create sees the mark before its next effect. */
inline Advance() {
  if
  :: It.o == DELETE -> Remove()
  :: It.o == CREATE && IsMarked && IsSettled(CREATE) -> Write(CANCEL)
  :: It.o == CREATE && IsMarked && !IsSettled(CREATE) ->
     REACHED(16, "a cancelled create waits for its calls");
     Write(RELEASE_TO_WAIT)
  :: It.o == CREATE && !IsMarked && It.is_undoing -> Undo()
  :: It.o == CREATE && !IsMarked && !It.is_undoing && It.look_first -> It.at = BEFORE_LOOK
  :: It.o == CREATE && !IsMarked && !It.is_undoing && !It.look_first -> Forward()
  fi
}

/* §9 and workflows/create_vm.cc, Look: by UUID and label on the recorded host. */
inline Look() {
  It.look_first = 0;
  if
  :: host == NOWHERE -> It.step = PLACE; It.at = ADVANCE
  :: host == THERE -> It.step = (elsewhere -> PUBLISH : DEFINING); It.at = ADVANCE
  :: host == HERE && dom == STRANGER ->
     REACHED(14, "a stranger's domain of the same UUID is found");
     BeginUndo(0)
  :: host == HERE && dom == ABSENT -> It.step = DEFINING; It.at = ADVANCE
  :: host == HERE && dom == ABSENT && faults > 0 -> faults--; BeginUndo(1) /* Tried often enough. */
  :: Found && (!InTime || IsAhead) -> Drop()
  :: Found && InTime && !IsAhead ->
     REACHED(15, "a machine is found by its label and adopted");
     label = EffectFence(It.o, It.fence); /* §10: a take-over first stamps its fence. */
     It.step = (IsRunning -> PUBLISH : DEFINING); It.at = ADVANCE
  fi
}

/* §9, §10 and hypervisor/libvirt_effects.cc: one effect on the recorded host. Right beside the call stands the guard;
 * a look says whether there is anything to do, and (Conclude) afterwards what came of it. */
inline Ask() {
  It.call = (calls[0].kind == NONE -> 0 : 1);
  if
  :: calls[It.call].kind != NONE -> res = UNAVAILABLE
  :: else ->
     calls[It.call].kind = It.effect; calls[It.call].fence = EffectFence(It.o, It.fence); calls[It.call].caller = me;
     res = WAITING; It.at = IN_CALL
  fi
}

inline Begin() {
  if
  :: !InTime -> res = FENCED; REACHED(8, "a stale worker is stopped beside its effect")
  :: InTime && host == NOWHERE -> res = DONE
  :: InTime && host == THERE ->
     elsewhere = (It.effect == START -> 1 : (It.effect == DESTROY -> 0 : elsewhere)); res = DONE
  :: InTime && host == HERE && IsInTheWay -> res = CONFLICT
  :: InTime && host == HERE && !IsInTheWay && IsAhead -> res = FENCED
  :: InTime && host == HERE && !IsInTheWay && !IsAhead ->
     if
     :: It.effect == DEFINE && IsRunning -> label = EffectFence(It.o, It.fence); res = DONE
     :: It.effect == START && IsRunning -> res = DONE
     :: It.effect == START && dom == ABSENT -> res = UNKNOWN
     :: It.effect == DESTROY && !IsRunning -> res = DONE
     :: It.effect == UNDEFINE && dom == ABSENT -> res = DONE
     :: It.effect == UNDEFINE && IsRunning -> res = CONFLICT
     :: (It.effect == DEFINE && !IsRunning) || (It.effect == START && dom == DEFINED) ||
        (It.effect == DESTROY && IsRunning) || (It.effect == UNDEFINE && dom == DEFINED) -> Ask()
     fi
  fi
}

inline Conclude() {
  if
  :: It.effect == DEFINE -> res = (Exists && label == EffectFence(It.o, It.fence) -> DONE : UNKNOWN)
  :: It.effect == START -> res = (IsRunning -> DONE : (calls[It.call].reply == 2 -> UNAVAILABLE : UNKNOWN))
  :: It.effect == DESTROY -> res = (IsRunning -> UNKNOWN : DONE)
  :: It.effect == UNDEFINE -> res = (IsRunning -> CONFLICT : (Exists -> UNKNOWN : DONE))
  fi;
  Free(It.call)
}

/* Past its deadline, or the reply is lost. */
inline GiveUp() {
  faults--; res = UNKNOWN;
  if
  :: calls[It.call].reply != 0 -> Free(It.call)
  :: else -> calls[It.call].caller = GIVEN_UP
  fi
}

/* engine/run.cc, RunStep and Undo: what follows from how the effect ended. */
inline Follow() {
  It.effect = NONE; It.call = 0;
  if
  :: res == FENCED -> Drop()
  :: res != FENCED && (It.is_undoing || It.o == DELETE) ->
     if
     :: res == UNKNOWN || res == UNAVAILABLE -> Write(RELEASE)
     :: res == DONE || res == CONFLICT ->
        It.step = (It.is_undoing -> It.step - 1 : It.step + 1);
        Write(UNDO_STEP)
     fi
  :: res != FENCED && !It.is_undoing && It.o == CREATE ->
     if
     :: res == DONE -> It.step++; Write(STEP_DONE)
     :: res == DONE && It.step == DEFINING -> It.step++; It.at = ADVANCE /* Rides with the next record. */
#ifdef WRONG_UNKNOWN_TAKEN_AS_DONE
     :: res == UNKNOWN -> It.step++; It.at = ADVANCE
#else
     :: res == UNKNOWN -> It.look_first = 1; Write(RELEASE)
#endif
     :: res == UNAVAILABLE -> Write(RELEASE)
     :: res == UNAVAILABLE -> BeginUndo(1)
     :: res == CONFLICT -> BeginUndo(0)
     fi
  fi
}

#define GiveBack Op.is_held = 0; Op.is_abandoned = 0; Op.lapsed = 0
#define End(how) \
  Op.state = how; GiveBack; Op.awaits = 0; Op.step = 0; Op.is_undoing = 0; Op.look_first = 0; Forget(me)
#ifdef WRONG_RELEASE_FORGETS_CALLS
#define NoteCalls skip
#else
#define NoteCalls Op.calls_of = (CallsOut -> 1 : 0)
#endif

/* Said only when the VM is not marked: every record of a create that goes forward, and its end. */
#define IsUnlessMarked                                                                            \
  (It.write == PLACED_HERE || It.write == PLACED_THERE || It.write == STEP_DONE ||              \
   It.write == READIED || It.write == GAVE_UP)

/* §10 and ledger/advance.cc, Record: one transaction WHERE fence = mine AND NOT marked. COMMIT may fail with the rows
 * written or not: the worker drops everything, and its lease runs out by itself. */
inline Commit() {
  if
  :: !MayWrite -> REACHED(10, "a stale worker is stopped by the ledger"); Drop()
  :: MayWrite && IsUnlessMarked && IsMarked -> It.at = ADVANCE
  :: MayWrite && !(IsUnlessMarked && IsMarked) && faults > 0 -> faults--; Drop()
  :: MayWrite && !(IsUnlessMarked && IsMarked) ->
     /* No effect of a stale fence is ever recorded. */
     assert(Op.is_held && Op.fence == It.fence);
     Op.step = It.step; Op.is_undoing = It.is_undoing; Op.look_first = It.look_first;
     It.at = ADVANCE;
     if
     :: It.write == PLACED_HERE -> host = (host == NOWHERE -> HERE : host)
     :: It.write == PLACED_THERE -> host = THERE
     :: It.write == STEP_DONE || It.write == UNDO_STEP
     :: It.write == UNPLACED -> host = NOWHERE
     :: It.write == HELD -> hold = DELETE
     :: It.write == READIED -> vm = READY; hold = NOBODY; End(SUCCEEDED)
     :: It.write == GAVE_UP -> vm = BROKEN; hold = NOBODY; End(FAILED)
     :: It.write == CANCEL -> hold = (hold == CREATE -> NOBODY : hold); End(CANCELLED)
     :: It.write == REMOVED -> vm = DELETED; host = NOWHERE; hold = NOBODY; End(SUCCEEDED)
     :: It.write == RELEASE -> NoteCalls; GiveBack; Forget(me)
     :: It.write == RELEASE_TO_WAIT -> Op.awaits = 1; NoteCalls; GiveBack; Forget(me)
     fi;
     if
     :: It.at == ADVANCE && faults > 0 -> faults--;
        REACHED(11, "a commit is told as failed and was written");
        Drop()
     :: true
     fi
  fi;
  It.write = 0
}

proctype Worker(byte me) {
  byte res;
end:
  do
  :: atomic {
       if
       :: It.at == IDLE && (IsDue(CREATE) || IsDue(DELETE)) && (me == 1 || threads[1].at != IDLE) -> Take()
       :: It.at == BEFORE_EFFECT -> Begin()
       :: It.at == IN_CALL && calls[It.call].reply != 0 -> Conclude()
       :: It.at == IN_CALL && faults > 0 -> GiveUp()
       :: It.at == BEFORE_LOOK -> Look()
       :: It.at == BEFORE_WRITE -> Commit()
       fi;
       if
       :: res != 0 && res != WAITING -> Follow()
       :: else
       fi;
       res = 0;
       if
       :: It.at == ADVANCE -> Advance()
       :: else
       fi
     }
  od
}

init {
  atomic {
    if
    :: dom = STRANGER
    :: true
    fi;
    run Send(); run Send() /* The same create, at once. */
  };
  atomic { sent == 2 -> run Worker(1); run Worker(2); run Client() }
}

/* §9: no operation is given up silently; each one ends, once things stop going wrong. */
ltl create_ends { [] ((ops[CREATE].state == OPEN) -> <> (ops[CREATE].state != OPEN)) }
ltl delete_ends { [] ((ops[DELETE].state == OPEN) -> <> (ops[DELETE].state != OPEN)) }
