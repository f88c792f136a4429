package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// minMembers is one cluster to stage on and two to put in order.
const minMembers = 3

// Options are what the demo was asked for.
type Options struct {
	// Soak is how long the first stage waits after its clusters are updated.
	Soak time.Duration
	// Interactive waits for Enter, or for an approval from elsewhere, before each approval.
	Interactive bool
	// In is where Enter comes from.
	In io.Reader
	// Out gets everything that is printed; colours only if it is a terminal.
	Out io.Writer
	// Program is how to call devfleet for this fleet, for advice.
	Program string
}

// Run plays all acts on the fleet. It returns a *Failure if anything is not as it should be.
func Run(ctx context.Context, fleet *access.Access, options Options) error {
	if fleet.Fleet.Members < minMembers {
		return fmt.Errorf("the demo needs %d members and this fleet has %d; start another: %s down && %s demo --members %d",
			minMembers, fleet.Fleet.Members, options.Program, options.Program, minMembers)
	}
	s := &story{Access: fleet, options: options, screen: newScreen(options.Out), soak: options.Soak, began: time.Now()}
	if options.Interactive {
		s.enter = lines(options.In)
	}
	s.screen.plain("\nEvery rollout can be followed in the Temporal UI: %s", s.Fleet.TemporalUI())
	if err := s.clean(ctx); err != nil {
		return err
	}
	acts := s.acts()
	for i := range acts {
		if err := s.play(ctx, i, &acts[i], len(acts)); err != nil {
			return err
		}
	}
	s.summary(acts, time.Since(s.began))
	return nil
}

// play runs one act and remembers what it took.
func (s *story) play(ctx context.Context, i int, a *act, total int) error {
	s.screen.title(fmt.Sprintf("%d of %d  %s", i+1, total, a.title), a.about)
	checked := s.checked
	began := time.Now()
	if err := a.play(ctx); err != nil {
		return fmt.Errorf("act %d, %s: %w", i+1, a.title, err)
	}
	a.took = time.Since(began)
	a.checked = s.checked - checked
	a.note = s.note
	s.note = ""
	return nil
}

// summary prints what was checked, and how to look around.
func (s *story) summary(acts []act, took time.Duration) {
	s.screen.title("What was checked", "")
	s.screen.plain("    %-54s %6s %8s", "act", "checks", "time")
	for i, a := range acts {
		s.screen.plain("%s %d  %-52s %6d %8s  %s", s.screen.good("✓"), i+1, a.title, a.checked, progress.Elapsed(a.took), s.screen.dim(a.note))
	}
	s.screen.plain("    %-54s %6d %8s\n", "all as it should be", s.checked, progress.Elapsed(took))
}

// LookAround says how to look at what the demo has left on a fleet that stays up.
func LookAround(out io.Writer, fleet *access.Access, program string) {
	f := fleet.Fleet
	fmt.Fprintf(out, `The fleet is up, with everything the demo made. To look around:

  export %s PATH=%s:$PATH

`, strings.Join(f.Environment(), " "), f.Path("bin"))
	for _, hint := range [][2]string{
		{"kubectl get crp,csur,clusterapprovalrequest", "the placement, its runs, the approvals"},
		{"kubectl get clusterresourcesnapshots --show-labels", "the versions a run can go to"},
		{"kubectl describe csur " + runName(5), "stages, clusters, events"},
		{"kubectl --context member-1 -n " + namespaceName + " get cm,deploy", "what is on a member"},
		{"kubectl get clusterstageanalysisruns -o wide", "what an analysis has measured"},
		{"temporal workflow list", "rollouts since Temporal's data was deleted"},
		{"temporal workflow show --workflow-id " + wf.UpdateRunID("", runName(5)), "the history of a run"},
	} {
		fmt.Fprintf(out, "  %-60s # %s\n", hint[0], hint[1])
	}
	fmt.Fprintf(out, "\nDashboard     %s\n              works once, and %s restart dashboard makes another; then the runs are at %s and %s\n",
		f.DashboardLink(), program, f.Dashboard("/runs/"+runName(1)), f.Dashboard("/runs/"+runName(5)))
	fmt.Fprintf(out, "Temporal UI   %s\nRun it again  %s demo\nEnd it        %s down\n", f.TemporalUI(), program, program)
}

// lines reads a person's Enters in the background: reading cannot be interrupted, waiting for it can.
func lines(in io.Reader) <-chan struct{} {
	pressed := make(chan struct{})
	go func() {
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			pressed <- struct{}{}
		}
	}()
	return pressed
}
