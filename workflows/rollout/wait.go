package rollout

import "time"

// The brakes: what keeps a cluster from moving. Those that come with the facts are first.
const (
	BrakeSuspension = "Suspension"    // the placement suspends the cluster
	BrakeHook       = "LifecycleHook" // a lifecycle hook is not answered
	BrakeRefusal    = "RefusedWrite"  // the API server refuses to write its binding
	BrakeHold       = "RolloutHold"   // a hold covers what would begin
	BrakeWindow     = "RolloutWindow" // a window is closed for what would begin
	BrakeBusy       = "BusyCluster"   // the owner of the cluster has asked that nothing begins
	BrakeBase       = "PlanBase"      // the cluster has something else than when the plan was made
)

// The brakes of a rolling update, which Decide finds itself.
const (
	BrakePartition      = "Partition"
	BrakePause          = "Pause"
	BrakeMaxInFlight    = "MaxInFlight"    // as many clusters of its value as may are being updated
	BrakeMaxUnavailable = "MaxUnavailable" // no further cluster may become unavailable
	BrakeMaxSurge       = "MaxSurge"       // no further cluster may have resources
	BrakeReplacement    = "Replacement"    // what replaces its copy has not settled
	BrakeNewCluster     = "NewCluster"     // the copy on the cluster that replaces it is not known to be available
	BrakeDeparture      = "Departure"      // the copy that it replaces is not gone
	BrakeClaim          = "Claim"          // another change of it may still be written
)

// Reasons of waits, as conditions have them. The values are those of the API.
const (
	reasonWindowClosed         = "WindowClosed"
	reasonOutsideAllowedWindow = "OutsideAllowedWindow"
	reasonHeldByPartition      = "HeldByPartition"
	reasonRolloutPaused        = "RolloutPaused"
)

// Wait is why a cluster does not move.
type Wait struct {
	Cluster string
	// Kind is the brake, Reason what conditions call it.
	Kind, Reason string
	// Op is the operation of a rolling update that waits; empty if all do.
	Op Op
	// Object names what brakes: the hold, the window, the hook.
	Object string
	// Why is what its author says: the API server of a write, a user of a hold, a hook of what is to be done.
	Why string
	// Since is when the wait began, if that is known. Until is when time alone may end it; zero if it never does.
	Since, Until time.Time
}

// Told is what a status says of a wait.
type Told struct{ Reason, Text string }

// IsNone reports whether the status says of no wait.
func (t Told) IsNone() bool { return t == Told{} }

// Told returns what a status says of the wait.
func (w Wait) Told() Told { return Told{w.Reason, w.Text()} }

// nature is how a brake acts on a cluster.
type nature struct {
	// atStart says that it keeps a cluster from its turn, and lets what has begun end. Any other keeps a cluster that has its turn
	// from being written to.
	atStart bool
	// alone says that clusters behind it in the order of a stage do not wait with it.
	alone bool
	// patient says that the cluster is neither stuck nor given up, however long it waits, and frozen that nothing is written even if
	// the run has the cluster already.
	patient, frozen bool
	// prepares says that a rolling update takes the cluster out of service before it waits.
	prepares bool
	// lasting says that only a change of the placement ends the wait, limited that it ends as other clusters move, and retried that a
	// rolling update goes on without the cluster until it is time to try again.
	lasting, limited, retried bool
}

// natures of the brakes.
var natures = map[string]nature{
	BrakeSuspension:     {patient: true, frozen: true, lasting: true},
	BrakeHook:           {patient: true, prepares: true},
	BrakeRefusal:        {retried: true},
	BrakeHold:           {atStart: true},
	BrakeWindow:         {atStart: true},
	BrakeBusy:           {atStart: true},
	BrakeBase:           {atStart: true, alone: true},
	BrakePartition:      {lasting: true},
	BrakePause:          {lasting: true},
	BrakeMaxInFlight:    {limited: true},
	BrakeMaxUnavailable: {limited: true},
	BrakeMaxSurge:       {limited: true},
	BrakeReplacement:    {limited: true},
	BrakeNewCluster:     {limited: true, patient: true},
	BrakeDeparture:      {limited: true},
	BrakeClaim:          {limited: true},
}

// Register adds a brake that acts as another one does until the returned function is called: tests add brakes this way. It must not run
// while anything is decided.
func Register(kind, like string) (remove func()) {
	natures[kind] = natures[like]
	return func() { delete(natures, kind) }
}

// Closed returns the waits of clusters that must not begin now.
func (p StagePlan) Closed() []Wait { return waitsAtStart(p.Waits) }

func waitsAtStart(waits []Wait) (closed []Wait) {
	for _, wait := range waits {
		if natures[wait.Kind].atStart {
			closed = append(closed, wait)
		}
	}
	return closed
}

// FirstTold returns those of some waits whose clusters waited for nothing before, as the status says.
func FirstTold(waits []Wait, clusters []StageCluster) (first []Wait) {
	told := make(map[string]bool, len(clusters))
	for i := range clusters {
		told[clusters[i].Name] = !clusters[i].Told.IsNone()
	}
	for _, wait := range waits {
		if !told[wait.Cluster] {
			first = append(first, wait)
		}
	}
	return first
}

// Wait returns what keeps a cluster of a stage from being written to in its turn: the first of its waits. A cluster that the run has is
// written to, so that a freeze keeps nothing back there.
func (c *StageCluster) Wait() *Wait {
	for i := range c.Waits {
		of := natures[c.Waits[i].Kind]
		if !of.atStart && (!of.frozen || c.Owner == OwnerNone) {
			return &c.Waits[i]
		}
	}
	return nil
}

// named returns a wait as that of the cluster.
func (c *StageCluster) named(wait *Wait) Wait {
	of := *wait
	of.Cluster = c.Name
	return of
}

// closure returns what keeps a cluster of a stage from its turn; nil if it may begin.
func (c *StageCluster) closure() *Wait {
	return c.firstWait(func(of nature) bool { return of.atStart })
}

// isClosed reports whether a cluster of a stage must not begin now.
func (c *StageCluster) isClosed() bool { return c.closure() != nil }

// waitsAlone reports whether a cluster of a stage must not begin now, and those behind it may.
func (c *StageCluster) waitsAlone() bool {
	wait := c.closure()
	return wait != nil && natures[wait.Kind].alone
}

// isFrozen reports whether nothing is to be written to a cluster, also if the run has it.
func (c *StageCluster) isFrozen() bool {
	return c.firstWait(func(of nature) bool { return of.frozen }) != nil
}

// isPatient reports whether a cluster in its turn waits as long as it takes.
func (c *StageCluster) isPatient() bool {
	wait := c.Wait()
	return c.isFrozen() || wait != nil && natures[wait.Kind].patient
}

// firstWait returns the first wait of a cluster whose brake is of a nature.
func (c *StageCluster) firstWait(is func(nature) bool) *Wait {
	return firstWait(c.Waits, "", is)
}

// firstWait returns the first of some waits that concerns an operation and whose brake is of a nature.
func firstWait(waits []Wait, op Op, is func(nature) bool) *Wait {
	for i := range waits {
		if of := waits[i].Op; (of == "" || of == op) && is(natures[waits[i].Kind]) {
			return &waits[i]
		}
	}
	return nil
}
