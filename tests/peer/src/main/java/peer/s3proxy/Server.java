package peer.s3proxy;

import java.net.URI;
import java.util.List;
import java.util.Properties;
import org.gaul.s3proxy.AuthenticationType;
import org.gaul.s3proxy.S3Proxy;
import org.jclouds.ContextBuilder;
import org.jclouds.blobstore.BlobStoreContext;
import peer.Conversation;

/** An S3 server over a directory: {@code Server DIRECTORY IDENTITY CREDENTIAL LOG}; {@code port} answers its port. */
public final class Server {
    private Server() {
    }

    public static void main(String[] args) throws Exception {
        Conversation.hold(args[3], () -> {
            Properties settings = new Properties();
            settings.setProperty("jclouds.filesystem.basedir", args[0]);
            BlobStoreContext context = ContextBuilder.newBuilder("filesystem-nio2")
                .credentials(args[1], args[2])
                .overrides(settings)
                .buildView(BlobStoreContext.class);
            S3Proxy server = S3Proxy.builder()
                .blobStore(context.getBlobStore())
                .endpoint(URI.create("http://127.0.0.1:0"))
                .awsAuthentication(AuthenticationType.AWS_V2_OR_V4, args[1], args[2])
                .build();
            server.start();
            return (request, more) -> List.of(List.of(String.valueOf(server.getPort())));
        });
    }
}
