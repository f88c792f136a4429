package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks, and what its keys begin with.
const (
	headerWebhookID        = "webhook-id"
	headerWebhookTimestamp = "webhook-timestamp"
	headerWebhookSignature = "webhook-signature"
	webhookKeyPrefix       = "whsec_"
)

// Sign signs a request as Standard Webhooks are signed, with each of the keys: while keys change, a receiver may know either. What it
// returns is what is wrong with the keys; empty if nothing is.
func Sign(request *http.Request, id string, body []byte, keys []string, now time.Time) (problem string) {
	at := strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, text := range keys {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, webhookKeyPrefix))
		if err != nil || len(key) == 0 {
			return "a key of the Secret is not whsec_ and base64"
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + at + ".")) // a hash takes all
		_, _ = mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	request.Header.Set(headerWebhookID, id)
	request.Header.Set(headerWebhookTimestamp, at)
	request.Header.Set(headerWebhookSignature, strings.Join(signatures, " "))
	return ""
}
