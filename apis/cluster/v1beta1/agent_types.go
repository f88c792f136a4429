package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgentRequest is what the hub asks of a member's agent itself: another image, another address of the hub, a new token. The agent
// does it as far as the owner of its cluster lets it (selfUpdate of its chart). It takes up a request once: what is done to the
// agent on its cluster later, as by an upgrade of its chart, stays.
type AgentRequest struct {
	// RequestTime tells this request from an earlier one. The same request with a later time is tried again.
	// +required
	RequestTime metav1.Time `json:"requestTime"`

	// Image is what the agent is to run, by a tag or a digest.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Image string `json:"image,omitempty"`

	// HubURL is where the agent is to reach the hub's API server, by https. The certificate there has to be of the
	// authority that the agent knows already.
	// +kubebuilder:validation:MaxLength=500
	// +optional
	HubURL string `json:"hubURL,omitempty"`

	// RenewToken has the agent renew a token for the hub that was issued before the request. The earlier token stays good
	// until it ends.
	// +optional
	RenewToken bool `json:"renewToken,omitempty"`
}
