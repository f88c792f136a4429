package imagepull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// nodesAtOnce is how many nodes pull at the same time.
	nodesAtOnce = 4
	// removal is how long the removal of Pods may take once the time to pull is over.
	removal = 10 * time.Second
	// firstRetry and lastRetry are the pauses between two looks for Pods that an agent has left behind.
	firstRetry, lastRetry = time.Second, time.Minute
)

// Puller has nodes pull images, for one question at a time.
type Puller struct {
	member kubernetes.Interface
	clock  clock.Clock
	log    logr.Logger

	mu sync.Mutex
}

// New returns a Puller for the cluster of a client, which should be one of Through.
func New(member kubernetes.Interface, clock clock.Clock, log logr.Logger) *Puller {
	return &Puller{member: member, clock: clock, log: log}
}

// Pull has the nodes pull images until ctx ends, and tells which of them they have. All Pods that it starts are removed when it returns.
func (p *Puller) Pull(ctx context.Context, question types.UID, left time.Duration,
	asked []fleetflowv1alpha1.ImagesOfPods) ([]fleetflowv1alpha1.PulledImage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.removeAll(ctx); err != nil { // none is of another question now
		return nil, err
	}
	nodes, err := p.member.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes that are to pull images: %w", err)
	}
	seen := newResults(asked)
	var group errgroup.Group
	group.SetLimit(nodesAtOnce)
	for _, tasks := range plan(nodes.Items, asked, seen) {
		group.Go(func() error {
			for _, t := range tasks {
				p.perform(ctx, t, question, left, seen)
			}
			return nil
		})
	}
	_ = group.Wait()      // the images have what goes wrong
	if ctx.Err() != nil { // a Pod may have been made although the request for it had no answer
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
		defer cancel()
		if err := p.removeAll(last); err != nil {
			p.log.Error(err, "Pods that pull images may be left until the next question")
		}
	}
	return seen.tell(), nil
}

// perform starts the Pod of a task, waits until it says something about all its images, or ctx ends, and removes it.
func (p *Puller) perform(ctx context.Context, t task, question types.UID, left time.Duration, seen *results) {
	found, why := p.pullOn(ctx, t, question, left)
	for i, image := range t.images {
		of, known := found[nameOf(i)]
		if !known {
			of = verdict{fleetflowv1alpha1.RehearsalUnknown, why}
		}
		seen.add(image, of)
	}
}

// pullOn returns what is known of the images of a task, by the names of their containers, and why nothing is of the others.
func (p *Puller) pullOn(ctx context.Context, t task, question types.UID, left time.Duration) (found map[string]verdict, why string) {
	if ctx.Err() != nil {
		return nil, "there was no time to pull it"
	}
	pod, err := p.member.CoreV1().Pods(t.pods.Namespace).Create(ctx, newPod(t, question, left), metav1.CreateOptions{})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, "there was no time to pull it" // a Pod that was made nevertheless is removed before the next question
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("namespace %s is not there yet", t.pods.Namespace)
	case err != nil:
		return nil, harmless("the cluster does not take the Pod that would pull it: " + err.Error())
	}
	defer p.remove(ctx, pod)
	for {
		found, over, err := p.watch(ctx, pod)
		switch {
		case over:
			return found, "its Pod says nothing about it"
		case ctx.Err() != nil:
			return found, "it was not pulled in time"
		case apierrors.IsNotFound(err):
			return found, "its Pod was removed"
		case err != nil:
			return found, harmless("its Pod cannot be watched: " + err.Error())
		}
	}
}

// errGone says that a Pod was removed by another.
var errGone = apierrors.NewNotFound(corev1.Resource("pods"), "")

// watch looks at a Pod until it says something about all its images, or the watch ends.
func (p *Puller) watch(ctx context.Context, pod *corev1.Pod) (found map[string]verdict, over bool, err error) {
	pods := p.member.CoreV1().Pods(pod.Namespace)
	changes, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()})
	if err != nil {
		return nil, false, fmt.Errorf("watching Pod %s: %w", pod.Name, err)
	}
	defer changes.Stop()
	now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{}) // it may have changed before the watch began
	if err != nil {
		return nil, false, err
	}
	if now.UID != pod.UID {
		return nil, false, errGone
	}
	found, over = judge(now)
	for !over {
		select {
		case <-ctx.Done():
			return found, false, ctx.Err()
		case change, open := <-changes.ResultChan():
			changed, is := change.Object.(*corev1.Pod)
			if !open || !is {
				return found, false, nil
			}
			if changed.UID == pod.UID {
				found, over = judge(changed)
				if change.Type == "DELETED" && !over {
					return found, false, errGone
				}
			}
		}
	}
	return found, over, nil
}

// remove removes a Pod, also once the time to pull is over.
func (p *Puller) remove(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
	defer cancel()
	err := p.member.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		p.log.Error(err, "A Pod that pulls images was not removed; it is before the next ones are made", "object", pod.Namespace+"/"+pod.Name)
	}
}

// removeAll removes all Pods that pull images: those that an agent has left behind that was killed.
func (p *Puller) removeAll(ctx context.Context) error {
	pods, err := p.member.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: Label})
	if err != nil {
		return fmt.Errorf("listing Pods that pull images: %w", err)
	}
	for i := range pods.Items {
		if _, is := pods.Items[i].Labels[Label]; is {
			p.remove(ctx, &pods.Items[i])
		}
	}
	return nil
}

// Start removes what an earlier agent has left behind. It is called once the agent leads.
func (p *Puller) Start(ctx context.Context) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		p.mu.Lock()
		err := p.removeAll(ctx)
		p.mu.Unlock()
		if err == nil {
			return nil
		}
		p.log.Error(err, "Pods that pull images may be left from an earlier agent")
		select {
		case <-ctx.Done():
			return nil
		case <-p.clock.After(wait):
		}
	}
}

// Through returns a configuration of the same API server by which nothing is written but Pods that are made and removed.
func Through(config *rest.Config) *rest.Config {
	through := rest.CopyConfig(config)
	through.Wrap(func(inner http.RoundTripper) http.RoundTripper { return podsOnly{inner} })
	return through
}

// podsOnly sends requests that read, make or remove Pods, or read nodes.
type podsOnly struct{ inner http.RoundTripper }

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t podsOnly) WrappedRoundTripper() http.RoundTripper { return t.inner }

var (
	allowedReads = regexp.MustCompile(`/api/v1/(nodes|pods|namespaces/[^/]+/pods(/[^/]+)?)$`)
	allowedMakes = regexp.MustCompile(`/api/v1/namespaces/[^/]+/pods$`)
	allowedEnds  = regexp.MustCompile(`/api/v1/namespaces/[^/]+/pods/[^/]+$`)
)

// RoundTrip sends a request, if it is one of these.
func (t podsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	if request.Method == http.MethodGet && allowedReads.MatchString(path) || request.Method == http.MethodPost && allowedMakes.MatchString(path) ||
		request.Method == http.MethodDelete && allowedEnds.MatchString(path) {
		return t.inner.RoundTrip(request)
	}
	return nil, errors.New(request.Method + " of " + path + " is nothing that pulls images")
}
