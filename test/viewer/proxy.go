package viewer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Request is something that an API server was asked for.
type Request struct {
	At time.Time
	// Verb is Kubernetes' word: get, list, watch, create, update, patch or delete.
	Verb string
	// Path without its query.
	Path string
}

// Proxy stands between a program and an API server, and keeps what the program asks for.
type Proxy struct {
	server   *httptest.Server
	mu       sync.Mutex
	requests []Request
}

// NewProxy puts a proxy before an API server. Its clients have the rights of the configuration.
func NewProxy(config *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a transport to %s: %w", config.Host, err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // what is watched arrives at once
	}
	p := &Proxy{}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.keep(r)
		forward.ServeHTTP(w, r)
	}))
	return p, nil
}

// Close ends the proxy, and all that goes through it.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// WriteKubeconfig writes a kubeconfig by which programs reach the API server through the proxy.
func (p *Proxy) WriteKubeconfig(file string) error {
	config := api.NewConfig()
	config.Clusters["hub"] = &api.Cluster{Server: p.server.URL}
	config.AuthInfos["hub"] = &api.AuthInfo{}
	config.Contexts["hub"] = &api.Context{Cluster: "hub", AuthInfo: "hub"}
	config.CurrentContext = "hub"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("writing the kubeconfig of the proxy: %w", err)
	}
	return nil
}

func (p *Proxy) keep(r *http.Request) {
	request := Request{At: time.Now(), Verb: verbOf(r), Path: r.URL.Path}
	p.mu.Lock()
	p.requests = append(p.requests, request)
	p.mu.Unlock()
}

// Requests returns those so far, in their order.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// verbOf is Kubernetes' word for a request.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet:
		if r.URL.Query().Get("watch") != "" && r.URL.Query().Get("watch") != "false" {
			return "watch"
		}
		if isCollection(r.URL.Path) {
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	default:
		return strings.ToLower(r.Method)
	}
}

// isCollection reports whether a path such as /apis/group/version/namespaces/name/resource names all objects of a kind.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return false // what is served, or no resource
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) == 1
}
