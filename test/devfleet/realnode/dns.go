package realnode

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// dnsTTL is short: what tests look at changes quickly.
	dnsTTL = 5
	// largest is how long a message over UDP may be.
	largest = 512
	// askLimit bounds a question to the API server.
	askLimit = 2 * time.Second
)

// resolver answers the DNS of a cluster: the addresses of its Services. All other names do not exist.
type resolver struct {
	client kubernetes.Interface

	mutex sync.Mutex
	// last is what was answered last, which counts while the API server is away.
	last map[string][]netip.Addr
}

func newResolver(client kubernetes.Interface) *resolver {
	return &resolver{client: client, last: map[string][]netip.Addr{}}
}

// errNoName says that there is no such name.
var errNoName = errors.New("no such name")

// serve answers questions until its connection is closed.
func (r *resolver) serve(ctx context.Context, connection net.PacketConn) {
	for {
		question := make([]byte, largest)
		n, from, err := connection.ReadFrom(question)
		if err != nil {
			return
		}
		go func() {
			if answer, err := r.answer(ctx, question[:n]); err == nil {
				_, _ = connection.WriteTo(answer, from) // who asked asks again
			}
		}()
	}
}

// answer returns the answer to a message.
func (r *resolver) answer(ctx context.Context, message []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	response := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	addresses, err := r.lookUp(ctx, strings.ToLower(question.Name.String()))
	switch {
	case errors.Is(err, errNoName):
		response.RCode = dnsmessage.RCodeNameError
	case err != nil:
		response.RCode = dnsmessage.RCodeServerFailure
	case question.Type == dnsmessage.TypeA || question.Type == dnsmessage.TypeALL:
		for _, address := range addresses {
			response.Answers = append(response.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return response.Pack()
}

// lookUp returns the addresses of a name.
func (r *resolver) lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	service, within := strings.CutSuffix(name, ".svc."+domain+".")
	parts := strings.Split(service, ".")
	if !within || len(parts) != 2 {
		return nil, errNoName
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	addresses, err := r.ask(ctx, parts[1], parts[0])
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known, is := r.last[name]; is && err != nil && !errors.Is(err, errNoName) {
		return known, nil
	}
	if err != nil {
		delete(r.last, name)
		return nil, err
	}
	r.last[name] = addresses
	return addresses, nil
}

// ask returns the addresses of a Service, of its Pods if it has none of its own.
func (r *resolver) ask(ctx context.Context, namespace, name string) ([]netip.Addr, error) {
	service, err := r.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errNoName
	}
	if err != nil {
		return nil, err
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		address, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil {
			return nil, errNoName
		}
		return []netip.Addr{address}, nil
	}
	ofService := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name}
	slices, err := r.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, ofService)
	if err != nil {
		return nil, err
	}
	return addressesOf(slices.Items, service.Spec.PublishNotReadyAddresses), nil
}

// addressesOf returns the addresses of endpoints that are ready, or of all.
func addressesOf(slices []discoveryv1.EndpointSlice, all bool) []netip.Addr {
	var addresses []netip.Addr
	for _, slice := range slices {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if !all && endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses
}
