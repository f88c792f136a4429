package demo

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// channel is a way in which an approval reaches a run.
type channel = placementv1beta1.ApprovalChannel

const (
	channelSignal  = placementv1beta1.ApprovalChannelTemporalSignal
	channelUpdate  = placementv1beta1.ApprovalChannelTemporalUpdate
	channelKubectl = placementv1beta1.ApprovalChannelKubectl

	comment = "lgtm"
)

// approve approves the canary stage of a run, or lets a person do so, and checks what is written down about it.
func (s *story) approve(ctx context.Context, f *follower, r rollout) error {
	run, err := f.until(ctx, waitLimit, "asks for an approval", asksApproval)
	if err != nil {
		return err
	}
	request := canaryApproval(run).Subject
	byHand, err := s.letApprove(ctx, f, r, request)
	if err != nil {
		return err
	}
	if !byHand {
		if r.channel == channelUpdate {
			if err := s.awaitGate(ctx, r, "approval"); err != nil {
				return err
			}
		}
		program, args := approval(r.channel, r.name(), request, access.Identity("demo"), time.Now())
		answer, err := s.shell(ctx, program, args...)
		if err != nil {
			return s.failure(ctx, "ClusterApprovalRequest "+request, "it can be approved by "+string(r.channel), err.Error(), err)
		}
		if r.channel == channelUpdate {
			if err := s.checkAnswer(ctx, r, answer); err != nil {
				return err
			}
		}
	}
	return s.checkApproval(ctx, r, request, byHand)
}

// awaitGate returns when the run's workflow knows what it waits for: the object says so a moment earlier, and an update
// that comes in between is refused.
func (s *story) awaitGate(ctx context.Context, r rollout, what string) error {
	finding := ""
	err := wait.PollUntilContextTimeout(ctx, lookEvery, waitLimit, true, func(ctx context.Context) (bool, error) {
		var status struct {
			WaitsFor string `json:"waitsFor"`
		}
		answer, err := s.Temporal.QueryWorkflow(ctx, wf.UpdateRunID("", r.name()), "", wf.StatusQuery)
		if err == nil {
			err = answer.Get(&status)
		}
		finding = fmt.Sprintf("it waits for %q", status.WaitsFor)
		if err != nil {
			finding = err.Error()
		}
		return strings.Contains(status.WaitsFor, what), nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return s.failure(ctx, r.object(), "its workflow waits for the "+what, finding, err)
	}
	return nil
}

// approval returns the command line that approves through a channel; without an identity the program signs with the user's own.
// It is pure.
func approval(d channel, run, request, identity string, now time.Time) (program string, args []string) {
	input := fmt.Sprintf(`{"stage":"%s","comment":"%s"}`, canaryStage, comment)
	workflow := []string{"--workflow-id", wf.UpdateRunID("", run), "--name", wf.ApproveSignal, "--input", input}
	if identity != "" {
		workflow = append(workflow, "--identity", identity)
	}
	switch d {
	case channelSignal:
		return "temporal", append([]string{"workflow", "signal"}, workflow...)
	case channelUpdate:
		return "temporal", append([]string{"workflow", "update", "execute"}, workflow...)
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"%s","message":"%s","lastTransitionTime":"%s","observedGeneration":1}]}}`,
		comment, comment, now.UTC().Format(time.RFC3339))
	return "kubectl", []string{"patch", "clusterapprovalrequests", request, "--type=merge", "-p", patch, "--subresource=status"}
}

// letApprove waits, if a person is there, for Enter or for an approval that the person gives in another terminal; it
// tells whether that happened.
func (s *story) letApprove(ctx context.Context, f *follower, r rollout, request string) (bool, error) {
	if s.enter == nil {
		return false, nil
	}
	s.screen.plain("\n   Press Enter to let the demo approve, or approve %s yourself in another terminal:\n", request)
	s.screen.plain("     export %s PATH=%s:$PATH", strings.Join(s.Fleet.Environment(), " "), s.Fleet.Path("bin"))
	for _, d := range []channel{channelKubectl, channelSignal, channelUpdate} {
		program, args := approval(d, r.name(), request, "", time.Now())
		s.screen.plain("     %s", quoted(append([]string{program}, args...)))
	}
	s.screen.plain("")
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	given := make(chan error, 1)
	go func() {
		_, err := f.until(waiting, 24*time.Hour, "is approved", approved)
		given <- err
	}()
	select {
	case <-s.enter:
		return false, nil
	case err := <-given:
		return err == nil, err
	}
}

// checkApproval checks that the approval is on the request, with who gave it through which channel.
func (s *story) checkApproval(ctx context.Context, r rollout, request string, byHand bool) error {
	statement := fmt.Sprintf("%s is Approved and ApprovalAccepted", request)
	found, err := becomes(ctx, s, s.Hub, client.ObjectKey{Name: request}, statement, notAccepted)
	if err != nil {
		return err
	}
	record := found.Status.Approval
	claim := "so the sender claims, no server has verified it"
	if record.Verified {
		claim = "verified by the server it went through"
	}
	statement = fmt.Sprintf("it says who and how: by %s through %s (%s)", record.Username, record.Channel.Text(), claim)
	if record.Username == "" {
		statement = fmt.Sprintf("it says how: through %s, by a user whom this API server does not name", record.Channel.Text())
	}
	finding := ""
	switch {
	case byHand:
	case record.Channel != r.channel:
		finding = fmt.Sprintf("it names the channel %s", record.Channel)
	case r.channel != channelKubectl && record.Username != access.Identity("demo"):
		finding = fmt.Sprintf("it names %s, not %s", record.Username, access.Identity("demo"))
	}
	return s.holds(ctx, "ClusterApprovalRequest "+request, statement, finding)
}

// notAccepted returns what is missing until an approval is given and accepted. It is pure.
func notAccepted(request *placementv1beta1.ClusterApprovalRequest) string {
	switch {
	case request == nil:
		return "missing"
	case !meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved):
		return "not Approved"
	case !meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted):
		return "Approved, but not ApprovalAccepted"
	case request.Status.Approval == nil:
		return "accepted, but status.approval does not say by whom"
	}
	return ""
}

// checkAnswer checks the sentence that an update returned to its sender.
func (s *story) checkAnswer(ctx context.Context, r rollout, answer string) error {
	sentence := fmt.Sprintf("stage %s of run %s approved by %s", canaryStage, r.name(), access.Identity("demo"))
	finding := ""
	if !strings.Contains(answer, sentence) {
		finding = "the answer was: " + strings.TrimSpace(answer)
	}
	return s.holds(ctx, r.object(), "the update answers that the stage is approved, and by whom", finding)
}

// workflowURL returns where the Temporal UI shows a workflow.
func (s *story) workflowURL(id string) string {
	return s.Fleet.TemporalUI() + "/" + url.PathEscape(id)
}
