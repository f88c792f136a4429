package rollout

import (
	"slices"
	"time"
)

// StageRole is what the recorded request of the workflow says about a cluster of a stage.
type StageRole int

// The roles of a cluster in a request.
const (
	// RoleNone says that the request does not name the cluster: it must not be written to.
	RoleNone StageRole = iota
	// RoleStart says that the workflow has chosen the cluster to be written to now.
	RoleStart
	// RoleInFlight says that an earlier request had it written to. It is waited for, and written
	// to again if that turns out to be necessary.
	RoleInFlight
	// RoleFailed says that the stage goes on without the cluster. It is not written to, but may
	// recover.
	RoleFailed
	// RoleSkipped says that the stage goes on without the cluster because the user wants it so, or
	// because it is no longer selected.
	RoleSkipped
	// RoleDone says that an earlier call saw it done, which is to be recorded.
	RoleDone
)

// BindingOwner is whose a cluster's binding is, from the point of view of a run.
type BindingOwner int

// The owners of a binding.
const (
	// OwnerUnknown says that the binding has not been observed yet.
	OwnerUnknown BindingOwner = iota
	// OwnerNone says that the run may take it.
	OwnerNone
	// OwnerThisRun says that the run has taken it, and that it is at the snapshot of the run; in a stage that removes, that it
	// is being deleted, or gone.
	OwnerThisRun
	// OwnerLaterRun says that a later run has taken it, and keeps it.
	OwnerLaterRun
	// OwnerGone says that there is no binding to take: the cluster is no longer selected, or is selected again in a stage that
	// removes.
	OwnerGone
)

// StageAction is what the user asks for in a run's spec about one cluster.
type StageAction int

// The actions.
const (
	ActionNone StageAction = iota
	ActionSkip
	ActionRetry
)

// BudgetAction is what is done about a stage of which more clusters have failed than may. The
// values are those of the API.
type BudgetAction string

// The actions of a failure budget.
const (
	BudgetKept     BudgetAction = ""
	BudgetWait     BudgetAction = "Wait"
	BudgetPause    BudgetAction = "Pause"
	BudgetAbort    BudgetAction = "Abort"
	BudgetRollback BudgetAction = "Rollback"
)

// Interrupts reports whether the run does not go on by itself.
func (a BudgetAction) Interrupts() bool { return a != BudgetKept && a != BudgetWait }

// FailureBudget is how many clusters of a stage may fail, and what happens beyond.
type FailureBudget struct {
	MaxFailures int
	OnExceeded  BudgetAction
}

// StageCluster is what is known of one cluster of a stage when deciding.
type StageCluster struct {
	Name string
	Role StageRole
	// Phase is how far the cluster is, as the status of the run says, and StartedAt since when it is
	// being updated; zero if the status does not say. An attempt that died may have recorded more
	// than the request knows of.
	Phase     ClusterPhase
	StartedAt time.Time
	// Owner of its binding, and whether the cluster is available with what the owner wants there, or has nothing left in a
	// stage that removes. That counts from ReadyAt on; it may be zero.
	Owner     BindingOwner
	Available bool
	ReadyAt   time.Time
	// Stalled says that the cluster fails before its deadline: what is placed there makes no progress, as it says itself.
	Stalled bool
	// Waits are what brakes the cluster, as far as this process knows, in the order of the brakes. Told is what the status says of
	// them; it survives the process.
	Waits []Wait
	Told  Told
	// Action is what the user asks for and has not been carried out.
	Action StageAction
}

// StageFacts are all that the next step of a stage is decided from.
type StageFacts struct {
	// Removes says that the stage takes resources away: all its clusters may be cleared at the same time, and which of them have
	// begun their status says, so that there are no requests.
	Removes bool
	// Clusters in the update order that was frozen when the run began.
	Clusters       []StageCluster
	MaxConcurrency int
	// Deadline is how long a cluster may take before it is given up, or the run is called stuck.
	Deadline time.Duration
	// Budget is nil if the stage has none: then no cluster is given up.
	Budget *FailureBudget
	// MembershipFrozen says that a cluster that is no longer selected is skipped. Otherwise it ends
	// the run.
	MembershipFrozen bool
	// SkipHeld lets clusters take the turn of those before them that are closed.
	SkipHeld bool
	// Stopping says that the run begins nothing more, and waits for what is in flight.
	Stopping bool
	// Stuck says that the run is called stuck already.
	Stuck bool
	// OutOfService says that clusters that the run does not update could not be put back into service: it does not end well with them.
	OutOfService bool
	// MaxTold bounds the clusters whose waits the status has room for; 0 is no bound.
	MaxTold int
	// ReliableFrom is from when on it is known of every cluster whether it is available. Before, as
	// after an outage of the API server, a cluster may be available that does not look so.
	ReliableFrom time.Time
	Now          time.Time
}

// StageOutcomes are clusters that an earlier attempt of the same request has recorded, so that
// the answer to the request must report them though this attempt did nothing about them.
type StageOutcomes struct {
	Done, Failed, Skipped, Requeued []string
}

// StagePlan is the next step of a stage. Clusters are in update order in every list.
type StagePlan struct {
	AlreadyRecorded StageOutcomes

	// What the user has asked for: Skip are clusters to go on without; Requeue are such clusters, or
	// failed ones, that wait for their turn again; Restart are clusters in flight that are written to
	// once more; Noted are clusters that have not had their turn, so that there is nothing to repeat.
	Skip, Requeue, Restart, Noted []string

	// Recover are clusters that were given up and are available after all.
	Recover []string
	// Done are clusters in flight that are available. RecordDone says that this call must record
	// them, because there will be no other request in this stage before the run ends or stands still.
	Done       []string
	RecordDone bool
	// Over says that a stage that removes has nothing left to do. LeavesOut says so, too, but that clusters are out of service.
	Over, LeavesOut bool
	// GiveUp are clusters past their deadline that the stage goes on without.
	GiveUp []string
	// Exceeded is what is to be done because more clusters have failed than may. Unless it is to
	// wait, the plan has nothing else to begin: the facts are others once it is done.
	Exceeded BudgetAction
	// Leave are clusters to be skipped because they are no longer selected.
	Leave []string
	// EndedBy is the cluster whose binding ends the run; its Owner says why.
	EndedBy string

	// Start are clusters to be written to now. They are all in the request.
	Start []string
	// InFlight are clusters to be waited for, those of Start included.
	InFlight []string
	// NotStarted are clusters of the request that are left alone because the run stops. The status
	// may say of those in TakeBack that they were started: it says so no longer.
	NotStarted, TakeBack []string
	// Waits are why clusters do not move, one of each: of those in flight why they are not written to, of those that have not had
	// their turn why they must not begin. Tell are waits that the status has to say and does not.
	Waits, Tell []Wait
	// Written are clusters that could be written to after all: their deadline counts from now.
	Written []string
	// Stuck is the cluster because of which the run is to be called stuck, and Progress says that the
	// run moves on, so that it is not called stuck any longer.
	Stuck    string
	Progress bool

	// Next are the clusters to choose for the next request.
	Next []string
	// StandsStill says that the stage has nothing in flight and nothing to begin before a cluster that must not begin opens.
	StandsStill bool
	// LookAt is the next instant at which time alone changes the plan; zero if there is none.
	LookAt time.Time
}

// DecideStage decides the next step of a stage. The workflow records a choice of clusters as the
// input of an activity before any of them is written to; so a plan starts clusters of the recorded
// request only, and what should be chosen next it proposes. At most MaxConcurrency clusters are in
// flight: a cluster at position p is proposed only if p < done + MaxConcurrency, where failed and
// skipped clusters count as done, and with SkipHeld those that wait because they are closed.
func DecideStage(facts StageFacts) StagePlan {
	d := stageDecision{StageFacts: facts}
	d.Clusters = slices.Clone(facts.Clusters)
	if d.Removes {
		requestRemovals(d.Clusters, d.Stopping)
	}
	d.awaitReady()
	d.adoptRecordedOutcomes()
	d.recordWaits()
	d.recordAvailable()
	d.carryOutActions()
	d.recordRecovered()
	d.giveUpOverdue()
	d.judgeBudget()
	if d.plan.Exceeded.Interrupts() {
		return d.plan
	}
	d.dropLostBindings()
	if d.plan.EndedBy != "" {
		return d.plan
	}
	d.startClusters()
	d.proposeNext()
	d.callStuck()
	return d.plan
}

// stageDecision is one call of DecideStage. The phases and roles of its clusters follow what is
// planned for them.
type stageDecision struct {
	StageFacts
	plan StagePlan
	// moves says that the request starts a cluster or reports one as done, or that the plan does.
	moves bool
}

// inFlight reports whether the request has a cluster written to or waited for.
func (c *StageCluster) inFlight() bool { return c.Role == RoleStart || c.Role == RoleInFlight }

// requestRemovals makes the request of a stage that removes: the clusters that have begun, and all others that may begin. An attempt that
// has died may have begun one of them without a word in the status.
func requestRemovals(clusters []StageCluster, stopping bool) {
	for i := range clusters {
		switch c := &clusters[i]; {
		case c.Phase == ClusterUpdating, c.Phase == ClusterWaiting && c.Owner == OwnerThisRun:
			c.Role = RoleInFlight
		case c.Phase == ClusterWaiting && !c.isClosed() && !stopping:
			c.Role = RoleStart
		case c.Phase == ClusterSkipped:
			c.Role = RoleSkipped
		default:
			c.Role = RoleNone
		}
	}
}

// conclude takes a cluster out of the request.
func (c *StageCluster) conclude(phase ClusterPhase) {
	c.Phase = phase
	c.Role = RoleNone
}

// awaitReady leaves clusters unavailable that have not been available for long enough.
func (d *stageDecision) awaitReady() {
	for i := range d.Clusters {
		c := &d.Clusters[i]
		if c.Available = c.Available && !d.Now.Before(c.ReadyAt); c.Available {
			c.ReadyAt = time.Time{}
		}
	}
}

// adoptRecordedOutcomes reports what an earlier attempt of the same request has recorded.
func (d *stageDecision) adoptRecordedOutcomes() {
	out := &d.plan.AlreadyRecorded
	for i := range d.Clusters {
		c := &d.Clusters[i]
		d.moves = d.moves || c.Role == RoleStart || c.Role == RoleDone
		wanted := c.inFlight() || c.Role == RoleFailed
		switch {
		case c.Role == RoleDone:
			c.Phase = ClusterDone
		case c.Phase == ClusterDone && wanted:
			out.Done = append(out.Done, c.Name)
		case c.Phase == ClusterFailed && c.inFlight():
			out.Failed = append(out.Failed, c.Name)
		case c.Phase == ClusterSkipped && c.Role != RoleSkipped:
			out.Skipped = append(out.Skipped, c.Name)
		case c.Phase == ClusterWaiting && (c.Role == RoleFailed || c.Role == RoleSkipped):
			out.Requeued = append(out.Requeued, c.Name)
		default:
			continue
		}
		c.Role = RoleNone
	}
}

// carryOutActions does what the user asks for. A cluster that is done stays so.
func (d *stageDecision) carryOutActions() {
	for i := range d.Clusters {
		c := &d.Clusters[i]
		switch {
		case c.Action == ActionNone || c.Phase == ClusterDone:
		case c.Action == ActionSkip:
			if c.Phase != ClusterSkipped {
				d.plan.Skip = append(d.plan.Skip, c.Name)
				c.conclude(ClusterSkipped)
			}
		case c.Phase == ClusterWaiting:
			d.plan.Noted = append(d.plan.Noted, c.Name)
		case c.Phase == ClusterUpdating:
			d.plan.Restart = append(d.plan.Restart, c.Name)
			c.StartedAt = d.Now
		default:
			d.plan.Requeue = append(d.plan.Requeue, c.Name)
			c.conclude(ClusterWaiting)
		}
	}
	acted := slices.Concat(d.plan.Skip, d.plan.Requeue)
	out := &d.plan.AlreadyRecorded
	for _, list := range []*[]string{&out.Failed, &out.Skipped, &out.Requeued} {
		*list = withoutNames(*list, acted)
	}
}

// withoutNames returns a list without some names; nil if nothing is left.
func withoutNames(list, names []string) []string {
	var left []string
	for _, name := range list {
		if !slices.Contains(names, name) {
			left = append(left, name)
		}
	}
	return left
}

// isAvailable reports whether a cluster has what the run wants there.
func (c *StageCluster) isAvailable() bool { return c.Owner == OwnerThisRun && c.Available }

// recordAvailable finds the clusters in flight that have become available.
func (d *stageDecision) recordAvailable() {
	for i := range d.Clusters {
		if c := &d.Clusters[i]; c.isAvailable() && c.inFlight() {
			d.plan.Done = append(d.plan.Done, c.Name)
			d.moves = d.moves || d.Removes // it is reported at once
			c.conclude(ClusterDone)
		}
	}
}

// recordRecovered finds the clusters that were given up and are available after all.
func (d *stageDecision) recordRecovered() {
	for i := range d.Clusters {
		if c := &d.Clusters[i]; c.isAvailable() && (c.Role == RoleFailed || c.Phase == ClusterFailed) {
			d.plan.Recover = append(d.plan.Recover, c.Name)
			c.conclude(ClusterDone)
		}
	}
	d.plan.AlreadyRecorded.Failed = withoutNames(d.plan.AlreadyRecorded.Failed, d.plan.Recover)
}

// isOverdue reports whether a cluster has had its time, or has failed before. One that was not observed may be available.
func (d *stageDecision) isOverdue(c *StageCluster) bool {
	seen := c.Owner == OwnerThisRun || c.Owner != OwnerUnknown && c.Wait() != nil
	late := c.Stalled || !d.Now.Before(laterOf(c.StartedAt.Add(d.Deadline), d.ReliableFrom))
	return seen && late && !c.isPatient() && c.inFlight() && c.Phase == ClusterUpdating && !c.StartedAt.IsZero()
}

func (d *stageDecision) listOverdue() []*StageCluster {
	var overdue []*StageCluster
	for i := range d.Clusters {
		if c := &d.Clusters[i]; d.isOverdue(c) {
			overdue = append(overdue, c)
		}
	}
	return overdue
}

// countPhase returns how many of some clusters are in a phase.
func countPhase(clusters []StageCluster, phase ClusterPhase) (n int) {
	for i := range clusters {
		if clusters[i].Phase == phase {
			n++
		}
	}
	return n
}

// giveUpOverdue gives up the clusters that are past their deadline or have failed before. A stage that only waits when more fail
// than may keeps those beyond its budget in flight; any other action concerns them all.
func (d *stageDecision) giveUpOverdue() {
	if d.Budget == nil {
		return
	}
	overdue := d.listOverdue()
	without, exceeded := GiveUp(countPhase(d.Clusters, ClusterFailed), len(overdue), d.Budget.MaxFailures)
	if d.Budget.OnExceeded != BudgetWait {
		without = len(overdue)
	} else if exceeded {
		d.plan.Exceeded = BudgetWait
	}
	for _, c := range overdue[:without] {
		d.plan.GiveUp = append(d.plan.GiveUp, c.Name)
		c.conclude(ClusterFailed)
	}
}

// judgeBudget asks for something to be done about too many failures. A run that stops already
// stands still soon.
func (d *stageDecision) judgeBudget() {
	if d.Budget != nil && !d.Stopping && countPhase(d.Clusters, ClusterFailed) > d.Budget.MaxFailures {
		d.plan.Exceeded = d.Budget.OnExceeded
	}
}

// dropLostBindings finds the clusters whose bindings the run cannot have. A cluster that was chosen by
// a run that stops shows only when it is chosen again.
func (d *stageDecision) dropLostBindings() {
	for i := range d.Clusters {
		c := &d.Clusters[i]
		if c.Role != RoleFailed && !c.inFlight() || c.Owner != OwnerLaterRun && c.Owner != OwnerGone {
			continue
		}
		switch {
		case d.Stopping && c.Role == RoleStart:
			d.plan.NotStarted = append(d.plan.NotStarted, c.Name)
			c.conclude(ClusterWaiting)
		case c.Owner == OwnerGone && d.MembershipFrozen:
			d.plan.Leave = append(d.plan.Leave, c.Name)
			c.conclude(ClusterSkipped)
		case d.plan.EndedBy == "":
			d.plan.EndedBy = c.Name
		}
	}
}

// startClusters decides what is written to and what is waited for.
func (d *stageDecision) startClusters() {
	for i := range d.Clusters {
		c := &d.Clusters[i]
		if !c.inFlight() {
			continue
		}
		if (d.Stopping || c.isClosed()) && c.Owner == OwnerNone {
			d.plan.NotStarted = append(d.plan.NotStarted, c.Name)
			d.plan.TakeBack = append(d.plan.TakeBack, c.Name)
			c.conclude(ClusterWaiting)
			continue
		}
		if d.mustWrite(c) {
			d.plan.Start = append(d.plan.Start, c.Name)
		}
		c.Phase = ClusterUpdating
		d.plan.InFlight = append(d.plan.InFlight, c.Name)
	}
	d.noteWaits()
	d.plan.RecordDone = len(d.plan.Done) > 0 && len(d.plan.InFlight) == 0 &&
		(d.Stopping || countPhase(d.Clusters, ClusterWaiting) == 0 || d.plan.StandsStill)
	if d.Removes {
		d.plan.RecordDone = len(d.plan.Done) > 0
		if !d.Stopping && len(d.plan.InFlight) == 0 && countPhase(d.Clusters, ClusterWaiting) == 0 {
			d.plan.end(d.OutOfService)
		}
	}
}

// end notes that a stage which removes has nothing left to do: it is over, unless clusters are still out of service.
func (p *StagePlan) end(outOfService bool) {
	p.Over = !outOfService
	p.LeavesOut = outOfService
}

// noteWaits notes why clusters do not move, and whether the stage stands still because none may begin.
func (d *stageDecision) noteWaits() {
	closed := false
	for i := range d.Clusters {
		c := &d.Clusters[i]
		wait := c.Wait()
		switch {
		case c.inFlight() && wait != nil:
			d.plan.Waits = append(d.plan.Waits, c.named(wait))
		case c.Phase == ClusterWaiting && c.isClosed() && !d.Stopping:
			d.plan.Waits = append(d.plan.Waits, c.named(c.closure()))
			closed = true
		}
	}
	d.plan.StandsStill = closed && len(d.plan.InFlight) == 0 && len(d.nextClusters()) == 0
}

// mustWrite reports whether a cluster of the request is to be written to now.
func (d *stageDecision) mustWrite(c *StageCluster) bool {
	wait := c.Wait()
	switch {
	case d.Stopping && c.Owner != OwnerThisRun, c.isFrozen():
		return false
	case c.Role == RoleStart, slices.Contains(d.plan.Restart, c.Name):
		return true
	case c.isPatient() && (c.Owner == OwnerThisRun || wait.Until.IsZero()):
		return false
	case wait != nil:
		return !d.Now.Before(wait.Until)
	case c.Owner == OwnerUnknown && !c.Told.IsNone():
		return true // another process was refused, which says nothing of a write of this one
	}
	return c.Owner == OwnerNone
}

// recordWaits brings up to date what the status says of clusters that cannot be written to.
func (d *stageDecision) recordWaits() {
	shown := 0
	for i := range d.Clusters {
		c := &d.Clusters[i]
		wait := c.Wait()
		switch {
		case !c.inFlight():
		case wait != nil && (d.MaxTold == 0 || shown < d.MaxTold):
			shown++
			if c.Told != wait.Told() {
				d.plan.Tell = append(d.plan.Tell, c.named(wait))
			}
		case wait == nil && !c.Told.IsNone() && c.Owner == OwnerThisRun:
			d.plan.Written = append(d.plan.Written, c.Name)
			c.StartedAt = d.Now
		}
	}
}

// proposeNext chooses the clusters of the next request. What the status says to be in flight though
// no request has it comes first: it holds a place already.
func (d *stageDecision) proposeNext() {
	if d.Stopping {
		return
	}
	d.plan.Next = d.nextClusters()
}

// nextClusters returns those that the next request begins with. The order is kept, so that from the first that is closed on all
// wait, unless the stage goes on without those that are closed until they open, or what closes one concerns no other.
func (d *stageDecision) nextClusters() (next []string) {
	progress := make(Progress, len(d.Clusters))
	for i := range d.Clusters {
		c := &d.Clusters[i]
		progress[i] = c.Phase
		if (d.SkipHeld && c.isClosed() || c.waitsAlone()) && c.Phase == ClusterWaiting {
			progress[i] = ClusterSkipped // for now
		}
		if c.Role == RoleNone && c.Phase == ClusterUpdating {
			next = append(next, c.Name)
		}
	}
	for _, i := range progress.Next(d.MaxConcurrency) {
		if d.Clusters[i].isClosed() {
			break
		}
		next = append(next, d.Clusters[i].Name)
	}
	return next
}

// callStuck names a cluster that is past its deadline, one whose write is refused before others. A run that
// stops says that it stops.
func (d *stageDecision) callStuck() {
	overdue := d.listOverdue()
	if len(overdue) > 0 && !d.Stuck && !d.Stopping && len(d.plan.Concluded()) == 0 {
		stuck := overdue[0]
		if i := slices.IndexFunc(overdue, func(c *StageCluster) bool { return c.Wait() != nil }); i >= 0 {
			stuck = overdue[i]
		}
		d.plan.Stuck = stuck.Name
	}
	d.plan.Progress = !d.Stopping && d.plan.Stuck == "" && !d.plan.StandsStill && !d.plan.LeavesOut && (!d.Stuck || d.moves || len(d.plan.Written) > 0)
	d.scheduleNextLook()
}

// scheduleNextLook finds the next instant at which time alone changes the plan: a refused write is due to be tried
// again, a cluster has been available for long enough, or is past its deadline.
func (d *stageDecision) scheduleNextLook() {
	quiet := d.Stuck || d.Stopping || d.plan.Stuck != ""
	for i := range d.Clusters {
		c := &d.Clusters[i]
		if !c.ReadyAt.IsZero() && (c.inFlight() || c.Role == RoleFailed) {
			d.plan.lookAt(c.ReadyAt)
		}
		if !c.inFlight() || c.isFrozen() {
			continue
		}
		if at := c.nextTry(); !at.IsZero() {
			d.plan.lookAt(at)
		}
		if c.isPatient() {
			continue
		}
		at := laterOf(c.StartedAt.Add(d.Deadline), d.ReliableFrom)
		if said := quiet && (d.Budget == nil || !d.Now.Before(at)); !said && !c.StartedAt.IsZero() {
			d.plan.lookAt(at)
		}
	}
}

// nextTry returns when a write that does not succeed now is due to be tried again; zero if time alone changes nothing.
func (c *StageCluster) nextTry() time.Time {
	wait := c.Wait()
	if wait == nil || c.isPatient() && c.Owner == OwnerThisRun {
		return time.Time{}
	}
	return wait.Until
}

// lookAt makes sure that the plan is looked at again by an instant.
func (p *StagePlan) lookAt(at time.Time) {
	if p.LookAt.IsZero() || at.Before(p.LookAt) {
		p.LookAt = at
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Concluded returns the clusters that a request need not name any longer once the plan is recorded. With
// any of them there is something to report to the workflow.
func (p *StagePlan) Concluded() []string {
	recorded := p.AlreadyRecorded
	return slices.Concat(recorded.Done, recorded.Failed, recorded.Skipped, recorded.Requeued,
		p.Skip, p.Requeue, p.Recover, p.Done, p.GiveUp, p.Leave, p.NotStarted)
}

// Rests reports whether a call is to report that the run is stuck or stands still, or that the stage is over.
func (p *StagePlan) Rests() bool { return p.Stuck != "" || p.StandsStill || p.Over }

// HasOutcomes reports whether the status has to say something else before anything is written to a cluster.
func (p *StagePlan) HasOutcomes() bool {
	outcomes := slices.Concat(p.Skip, p.Requeue, p.Restart, p.Noted, p.Recover, p.GiveUp, p.Leave, p.TakeBack, p.Written)
	return len(outcomes)+len(p.Tell) > 0 || p.RecordDone || p.Over || p.LeavesOut || p.Stuck != ""
}
