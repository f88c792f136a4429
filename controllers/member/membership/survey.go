package membership

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

// probeTimeout is how long the API server may take to say that it is ready.
const probeTimeout = 5 * time.Second

// cacheTimeout is how long the cache of pods may take to fill. A report must not wait for pods
// that cannot be listed: without heartbeats the cluster would pass for dead.
const cacheTimeout = 5 * time.Second

// Surveyor finds out how the cluster is.
type Surveyor struct {
	cached    client.Reader
	discovery discovery.DiscoveryInterface
	host      string
	authority string
	provider  *propertyprovider.Runner
}

// NewSurveyor returns a Surveyor of the cluster that config points to. Nodes and pods are read
// from the cache; provider is asked for what only it knows, if there is one.
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

// NodeCount returns the number of nodes.
func (s *Surveyor) NodeCount(ctx context.Context) (int, error) {
	nodes := &corev1.NodeList{}
	if err := s.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	return len(nodes.Items), nil
}

// Survey finds out how the cluster is now. An API server that does not answer is a finding,
// not an error.
func (s *Surveyor) Survey(ctx context.Context, now metav1.Time) (Survey, error) {
	out, err := s.resources(ctx, now)
	if err != nil {
		return Survey{}, err
	}
	out.EntryPoint, out.CertificateAuthority = s.host, s.authority
	if s.provider != nil {
		var response *propertyprovider.PropertyCollectionResponse
		response, out.Conditions = s.provider.Collect(ctx)
		out.take(response)
	}
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := s.discovery.RESTClient().Get().AbsPath("/readyz").DoRaw(probe); err != nil {
		out.Unhealthy = err.Error()
		return out, nil
	}
	if version, err := s.discovery.ServerVersion(); err == nil {
		out.Version = version.GitVersion
	}
	return out, nil
}

// take puts what a provider reports before what was found without it. What it leaves out stays.
func (s *Survey) take(response *propertyprovider.PropertyCollectionResponse) {
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
		*list.found, s.UsageUnknown = *list.reported, ""
		if !response.Resources.ObservationTime.IsZero() {
			s.Usage.ObservationTime = response.Resources.ObservationTime
		}
	}
}

// resources sums up nodes and pods. Pods that cannot be listed are a finding, not an error.
func (s *Surveyor) resources(ctx context.Context, now metav1.Time) (Survey, error) {
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := s.cached.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return Survey{}, fmt.Errorf("listing nodes: %w", err)
	}
	out := Survey{NodeCount: len(nodes.Items)}
	limited, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	err := s.cached.List(limited, pods, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		out.Usage = Usage(nodes.Items, pods.Items, now)
	case ctx.Err() != nil:
		return Survey{}, fmt.Errorf("listing pods: %w", err)
	default:
		out.UsageUnknown = fmt.Sprintf("listing pods: %v", err)
	}
	return out, nil
}
