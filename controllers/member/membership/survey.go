package membership

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

// probeTimeout is how long to wait for the API server's readiness.
const probeTimeout = 5 * time.Second

// cacheTimeout is how long to wait for the cache of pods to fill. A report must not wait for pods
// that cannot be listed: without heartbeats the hub would treat the cluster as dead.
const cacheTimeout = 5 * time.Second

// Surveyor collects facts about the cluster.
type Surveyor struct {
	cached    client.Reader
	discovery *discovery.DiscoveryClient
	host      string
	authority string
	provider  *propertyprovider.Runner
	// Namespaces has the namespaces of the cluster reported.
	Namespaces bool
	// Agent returns what this agent says of itself. It is optional.
	Agent func() map[clusterv1beta1.PropertyName]string

	// kinds are those that were found at kindsAt.
	kinds   string
	kindsAt time.Time
}

// NewSurveyor returns a Surveyor of the cluster that config points to. It reads nodes and pods from
// the cache, and asks the provider for further properties, if there is one.
func NewSurveyor(config *rest.Config, cached client.Reader, provider *propertyprovider.Runner) (*Surveyor, error) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a discovery client: %w", err)
	}
	authority := config.CAData
	if len(authority) == 0 && config.CAFile != "" {
		if authority, err = os.ReadFile(config.CAFile); err != nil {
			return nil, fmt.Errorf("reading the cluster's CA bundle: %w", err)
		}
	}
	return &Surveyor{
		cached: cached, discovery: api, host: config.Host,
		authority: base64.StdEncoding.EncodeToString(authority),
		provider:  provider,
	}, nil
}

// Shape returns what of the cluster is reported soon after it changes.
func (s *Surveyor) Shape(ctx context.Context) (Shape, error) {
	nodes := &corev1.NodeList{}
	if err := s.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return Shape{}, fmt.Errorf("listing nodes: %w", err)
	}
	shape := Shape{Nodes: len(nodes.Items)}
	if s.Namespaces {
		found, err := s.listNamespaces(ctx)
		if err != nil {
			return Shape{}, err
		}
		shape.Namespaces = fingerprintNamespaces(found)
	}
	return shape, nil
}

// Survey collects the current facts. An API server that does not answer is a fact, not an error.
func (s *Surveyor) Survey(ctx context.Context, now metav1.Time) (Survey, error) {
	out, err := s.surveyResources(ctx, now)
	if err != nil {
		return Survey{}, err
	}
	out.EntryPoint = s.host
	out.CertificateAuthority = s.authority
	if s.Agent != nil {
		out.Agent = s.Agent()
	}
	if s.provider != nil {
		var response *propertyprovider.PropertyCollectionResponse
		response, out.Conditions = s.provider.Collect(ctx)
		out.applyResponse(response)
	}
	if s.Namespaces {
		if out.Namespaces, err = s.listNamespaces(ctx); err != nil {
			return Survey{}, err
		}
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := s.discovery.RESTClient().Get().AbsPath("/readyz").DoRaw(probe); err != nil {
		out.Unhealthy = err.Error()
		return out, nil
	}
	if version, err := s.discovery.ServerVersionWithContext(probe); err == nil {
		out.Version = version.GitVersion
	}
	out.Kinds = s.surveyKinds(ctx, now.Time)
	return out, nil
}

// kindsEvery is how often the kinds of the cluster are looked for: it is two requests with long answers.
const kindsEvery = 5 * time.Minute

// surveyKinds returns what is reported of the kinds that can be created in the cluster; those found before if they cannot be found out.
func (s *Surveyor) surveyKinds(ctx context.Context, now time.Time) string {
	if !s.kindsAt.IsZero() && now.Sub(s.kindsAt) < kindsEvery {
		return s.kinds
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, lists, err := s.discovery.ServerGroupsAndResourcesWithContext(bounded)
	away, isPart := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !isPart {
		return s.kinds
	}
	served := clusterrules.ServedKinds{}
	for _, list := range lists {
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if !strings.Contains(resource.Name, "/") && slices.Contains(resource.Verbs, "create") {
				served[list.GroupVersion] = append(served[list.GroupVersion], resource.Kind)
			}
		}
	}
	for version := range away {
		served.AddUnknown(version.String())
	}
	s.kinds = served.Report()
	s.kindsAt = now
	return s.kinds
}

// applyResponse overrides the survey with the values that the provider reports. Values that it
// leaves out stay.
func (s *Survey) applyResponse(response *propertyprovider.PropertyCollectionResponse) {
	if response == nil {
		return
	}
	s.Properties = response.Properties
	for _, list := range []struct{ reported, found *corev1.ResourceList }{
		{&response.Resources.Capacity, &s.Usage.Capacity},
		{&response.Resources.Allocatable, &s.Usage.Allocatable},
		{&response.Resources.Available, &s.Usage.Available},
	} {
		if len(*list.reported) == 0 {
			continue
		}
		*list.found = *list.reported
		s.LargestPod = nil // it may count on nodes that are not there yet
		s.UsageUnknown = ""
		if !response.Resources.ObservationTime.IsZero() {
			s.Usage.ObservationTime = response.Resources.ObservationTime
		}
	}
}

// surveyResources sums up nodes and pods. Pods that cannot be listed are a fact, not an error.
func (s *Surveyor) surveyResources(ctx context.Context, now metav1.Time) (Survey, error) {
	nodes := &corev1.NodeList{}
	pods := &corev1.PodList{}
	if err := s.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return Survey{}, fmt.Errorf("listing nodes: %w", err)
	}
	out := Survey{NodeCount: len(nodes.Items), Location: locationOf(nodes.Items)}
	limited, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	err := s.cached.List(limited, pods, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		out.Usage = Usage(nodes.Items, pods.Items, now)
		out.LargestPod = LargestPod(nodes.Items, pods.Items)
	case ctx.Err() != nil:
		return Survey{}, fmt.Errorf("listing pods: %w", err)
	default:
		out.UsageUnknown = fmt.Sprintf("listing pods: %v", err)
	}
	return out, nil
}
