// Command soak tortures a fleet and judges what it did. It brings a local fleet up with two hub agents and real and simulated
// members; for the time it is given, users place, change, roll out, approve, stop, evict, hold, shut windows and remove, while
// processes are killed, frozen and slow, one hub agent is cut off from the hub or from Temporal, stores are full, members leave,
// fail, vanish and have clocks that are wrong, their API servers are away, and Temporal loses its data. Every write to the hub's
// store is recorded and judged by what the product promises (test/promise). In the end everything that hinders is taken away, and
// the fleet must come to rest exactly as users have asked for it; then everything is removed, and nothing may be left. No workflow
// task may have failed, except for a process that stood still, and every history must replay with the tree.
//
// A seed always gives the same steps of users and world; how they meet is left to the machine. What happened is kept in a
// bundle, which "replay" judges again.
//
//	make soak MINUTES=60 SEED=7
//	cd test/soak && go run . replay ../../.soak/7-20261124-031500
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// heartbeat is how often simulated members report: often enough that one that vanishes is noticed.
	heartbeat = 30 * time.Second
	// atRest is how long a healed fleet may take to come to rest, and how long it may take to remove everything.
	atRest = 8 * time.Minute
	// leastFree is how many bytes a soak needs on disk to begin with, eachMinute how many more for each minute: stores and logs.
	leastFree, eachMinute = 4 << 30, 64 << 20
)

// options of a soak.
type options struct {
	minutes float64
	seed    uint64
	size    size
	out     string
	root    string
	// from is a commit; the fleet comes up with its agents and is upgraded to the tree.
	from string
	// versions has Temporal give its tasks to one build at a time.
	versions bool
}

func main() {
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "soak", Short: "Torture a local fleet and judge every write", SilenceUsage: true, SilenceErrors: true}
	o := options{}
	seed := ""
	run := &cobra.Command{
		Use: "run", Short: "Bring a fleet up, torture it, judge it and take it down", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.seed, err = parseSeed(seed); err != nil {
				return err
			}
			return soak(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	run.Flags().Float64Var(&o.minutes, "minutes", 10, "how long users and the world go on")
	run.Flags().StringVar(&seed, "seed", "0", "seed of what happens; 0 for one by chance, which is printed")
	run.Flags().IntVar(&o.size.Placements, "placements", 6, "names of placements")
	run.Flags().IntVar(&o.size.Hollow, "simulated", 18, "members that only answer")
	run.Flags().IntVar(&o.size.Members, "members", 2, "members with API servers of their own")
	run.Flags().StringVar(&o.from, "from", "", "an earlier commit: the fleet comes up with it and is upgraded to the tree, with agents of both at once, forth and back")
	run.Flags().BoolVar(&o.versions, "worker-versions", false, "have Temporal give its tasks only to the build of the hub agent that leads, which is what upgrades of two builds at once are for")
	run.Flags().StringVar(&o.out, "out", ".soak", "folder for the fleet and for bundles, seen from the repository")
	run.Flags().StringVar(&o.root, "root", "../..", "the repository")
	replay := &cobra.Command{
		Use: "replay BUNDLE", Short: "Judge the writes of a bundle again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return replayBundle(args[0], cmd.OutOrStdout()) },
	}
	root.AddCommand(run, replay)
	return root
}

// parseSeed reads a seed; 0 asks for one by chance.
func parseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--seed %q is no seed: give the whole number that a soak has printed, or 0 for one by chance", text)
	}
	if seed == 0 {
		return rand.Uint64N(1_000_000) + 1, nil
	}
	return seed, nil
}

// replayBundle judges a bundle and fails if a promise was broken.
func replayBundle(dir string, out io.Writer) error {
	b, err := openBundle(dir)
	if err != nil {
		return err
	}
	v, err := judge(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d: %d writes recorded, %d of them judged (%d placements), %d breaches\n", b.header.Seed, v.Writes, v.Judged,
		v.Placements, len(v.Breaches))
	for _, breach := range v.Breaches {
		fmt.Fprintln(out, " ", breach)
	}
	if len(v.Breaches) > 0 {
		return fmt.Errorf("%d writes break a promise", len(v.Breaches))
	}
	return nil
}

// check refuses a soak that cannot be.
func (o options) check(dir string) error {
	switch {
	case o.minutes <= 0:
		return fmt.Errorf("--minutes %g: a soak takes some time", o.minutes)
	case o.size.Hollow < 3 || o.size.Placements < 1 || o.size.Members < 1:
		return fmt.Errorf("a soak needs 3 simulated members, 1 member and 1 placement at least")
	}
	if _, err := os.Stat(filepath.Join(dir, "supervisor.lock")); err == nil {
		return fmt.Errorf("%s has a fleet already: go run ./test/devfleet --dir %s down --purge", dir, dir)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(dir), &disk); err != nil {
		return fmt.Errorf("asking for the free space of %s: %w", filepath.Dir(dir), err)
	}
	return checkSpace(filepath.Dir(dir), disk.Bavail*uint64(disk.Bsize), o.minutes)
}

// checkSpace refuses a folder with too few free bytes for a soak of so many minutes.
func checkSpace(folder string, free uint64, minutes float64) error {
	if least := uint64(leastFree + minutes*eachMinute); free < least {
		return fmt.Errorf("%s has %d MiB free, a soak of %g minutes needs %d MiB: free some, or give another folder with --out", folder, free>>20,
			minutes, least>>20)
	}
	return nil
}

// soak does all of it. It fails if anything was found.
func soak(ctx context.Context, o options, out io.Writer) (err error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	folder := filepath.Join(root, o.out)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	dir := filepath.Join(folder, "fleet")
	if err := o.check(dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: seed %d, %g minutes, %d members and %d simulated ones\n", o.seed, o.minutes, o.size.Members, o.size.Hollow)
	defer func() { err = errors.Join(err, devfleet(ctx, root, dir, "down", "--purge")) }()
	links, err := newLinks()
	if err != nil {
		return err
	}
	u, err := bringUp(ctx, o, root, folder, dir, links[linkToTemporal].address())
	if u != nil {
		defer u.remove(ctx)
	}
	if err != nil {
		return err
	}
	commit, _ := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "HEAD").Output() // a copy without git has none
	now := time.Now().UTC()
	b, err := newBundle(filepath.Join(folder, fmt.Sprintf("%d-%s", o.seed, now.Format("20060102-150405"))), header{
		Seed: o.seed, Minutes: o.minutes, Size: o.size, Commit: strings.TrimSpace(string(commit)), From: o.from,
		Versions: o.versions, Began: now,
	})
	if err != nil {
		return err
	}
	findings, err := torture(ctx, o, dir, u, links, b, out)
	if err != nil {
		return err
	}
	v, err := judge(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: %d writes recorded, %d of them judged (%d placements), %d breaches\n", v.Writes, v.Judged, v.Placements,
		len(v.Breaches))
	return report(b, dir, append(findings, v.Breaches...), out)
}

// devfleet runs that of a tree on the soak's fleet.
func devfleet(ctx context.Context, root, dir string, args ...string) error {
	c := exec.CommandContext(context.WithoutCancel(ctx), "go", append([]string{"run", "./test/devfleet", "--dir", dir}, args...)...)
	c.Dir = root
	c.Stdout = io.Discard
	c.Stderr = os.Stderr
	return c.Run()
}

// bringUp starts the fleet, with the earlier commit if there is one, and with a hub agent that looks for Temporal at an address.
// Where that does not work, it may have been begun.
func bringUp(ctx context.Context, o options, root, folder, dir, temporal string) (*upgrade, error) {
	var u *upgrade
	source := root
	if o.from != "" {
		var err error
		if u, err = checkOut(ctx, root, folder, o.from); err != nil {
			return nil, err
		}
		u.late = o.seed%2 == 1
		source = u.source
	}
	up := []string{"up", "--members", fmt.Sprint(o.size.Members), "--hub-agent-arg=" + temporalFlag + temporal}
	if o.versions {
		up = append(up, "--hub-agent-arg=--temporal-worker-versions=true")
	}
	if err := devfleet(ctx, source, dir, up...); err != nil {
		return u, fmt.Errorf("bringing the fleet up: %w", err)
	}
	if u == nil {
		return nil, nil
	}
	return u, u.build(ctx, dir)
}

// torture lets users and world loose on a fleet and returns what was found when it came to rest.
func torture(ctx context.Context, o options, dir string, u *upgrade, links map[string]*link, b *bundle,
	out io.Writer) (findings []string, err error) {
	w, err := open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	w.upgrade = u
	w.links = links
	w.peer = &peer{kubeconfig: w.Fleet.Path("hub-agent-beside.kubeconfig"), program: w.Fleet.Binary(controlplane.HubAgent)}
	if u != nil {
		w.peer.program = filepath.Join(u.builds, theNew, controlplane.HubAgent)
	}
	if err := w.useLinks(ctx); err != nil {
		return nil, err
	}
	recorder, err := record(ctx, w.Fleet.Address("hub/etcd"), b)
	if err != nil {
		return nil, err
	}
	living, die := context.WithCancel(context.WithoutCancel(ctx))
	defer die()
	if err := w.hollow.Start(living); err != nil {
		return nil, err
	}
	if err := w.hollow.Grow(ctx, o.size.Hollow); err != nil {
		return nil, err
	}
	if err := w.makeStrategies(ctx); err != nil {
		return nil, err
	}
	users := userScript(o.seed, o.size)
	events := worldScript(o.seed, o.size, u != nil)
	w.began = time.Now()
	playing, enough := context.WithTimeout(ctx, time.Duration(o.minutes*float64(time.Minute)))
	defer enough()
	var both errgroup.Group
	both.Go(func() error { return w.play(playing, b, users) })
	both.Go(func() error { return w.play(playing, b, events) })
	if u != nil {
		both.Go(func() error { return u.define(playing, w, time.Duration(o.minutes*float64(time.Minute))) })
	}
	besides, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	go func() { _ = w.peer.keep(besides, w, filepath.Join(dir, "logs")) }() // without it, it is a smaller soak
	go tellTime(playing, o.minutes, out)
	if err := both.Wait(); err != nil {
		return nil, err
	}
	resting := context.WithoutCancel(ctx)
	fmt.Fprintln(out, "soak: healing, then at rest")
	if err := w.heal(resting, users.hollow); err != nil {
		return nil, err
	}
	began := time.Now()
	for _, what := range w.settle(resting, users, atRest) {
		findings = append(findings, "has not come about: "+what)
	}
	fmt.Fprintf(out, "soak: at rest after %s; removing everything\n", time.Since(began).Round(time.Second))
	if len(findings) == 0 {
		for _, what := range w.clear(resting, atRest) {
			findings = append(findings, "is left: "+what)
		}
	}
	if err := w.readTasks(resting); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "soak: %s\n", &w.tasks)
	findings = append(findings, w.tasks.findings()...)
	for _, what := range w.refusals {
		findings = append(findings, "was refused: "+what)
	}
	return findings, errors.Join(recorder.stop(), b.seal())
}

// tellTime says every minute how far the soak is.
func tellTime(ctx context.Context, minutes float64, out io.Writer) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fmt.Fprintf(out, "soak: %d of %g minutes\n", n, minutes)
		}
	}
}

// open connects to the fleet, whose real members get zones as the simulated ones have.
func open(ctx context.Context, dir string) (*world, error) {
	a, err := access.Open(dir)
	if err != nil {
		return nil, err
	}
	config, err := controlplane.RESTConfig(a.Fleet, state.Hub)
	if err != nil {
		return nil, err
	}
	status, err := a.Control.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor what runs: %w", err)
	}
	w := &world{Access: a, components: runningOf(status), runs: map[string]int{}}
	if w.hollow, err = hollow.New(config, hollow.Options{Heartbeat: heartbeat, Labels: func(i int) map[string]string {
		return map[string]string{zoneLabel: zones[i%len(zones)]}
	}}); err != nil {
		return nil, err
	}
	for i, name := range a.Fleet.MemberNames() {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, zoneLabel, zones[i%len(zones)])
		member := &clusterv1beta1.MemberCluster{}
		member.Name = name
		if err := a.Hub.Patch(ctx, member, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return nil, fmt.Errorf("giving %s a zone: %w", name, err)
		}
	}
	return w, nil
}

// report keeps what was found beside the recording, with the logs of the fleet, and fails if there is anything.
func report(b *bundle, dir string, findings []string, out io.Writer) error {
	if len(findings) == 0 {
		fmt.Fprintf(out, "soak: nothing was found; the bundle is %s\n", b.dir)
		return nil
	}
	text := strings.Join(findings, "\n") + "\n"
	fmt.Fprint(out, text)
	err := fmt.Errorf("%d findings; the bundle is %s", len(findings), b.dir)
	return errors.Join(err, os.WriteFile(filepath.Join(b.dir, findingsFile), []byte(text), 0o644),
		os.CopyFS(filepath.Join(b.dir, "logs"), os.DirFS(filepath.Join(dir, "logs"))))
}
