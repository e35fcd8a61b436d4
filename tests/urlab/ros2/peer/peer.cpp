// A DDS participant of another vendor (Fast DDS), driven by lines on stdin, for the tests of DDS backend and bridge.
//
//   peer DOMAIN FOLDER [anywhere]   payloads go to FOLDER; loopback only, unless "anywhere"
//
// Commands (USERDATA is "-" for none, RELIABILITY best_effort|reliable, DURABILITY volatile|transient_local):
//   subscribe ID TOPIC TYPE RELIABILITY DURABILITY DEPTH USERDATA
//   count ID TOPIC TYPE RELIABILITY DURABILITY DEPTH USERDATA    as subscribe, but samples are counted, not kept
//   counted ID                          says how many came since it was asked last, or since it subscribed
//   stall ID TOPIC TYPE                 a reliable reader with room for one sample, which never takes it
//   advertise ID TOPIC TYPE RELIABILITY DURABILITY DEPTH USERDATA
//   write ID FILE                       one sample: the bytes of FILE, CDR header included
//   quit
// Events, one line each:
//   ready
//   participant alive|gone GUID USERDATA_HEX
//   writer|reader alive|gone GUID TOPIC TYPE USERDATA_HEX RELIABILITY DURABILITY
//   matched ID COUNT      incompatible ID      sample ID LENGTH FILE      failed COMMAND
//   counted ID COUNT SECONDS LONGEST_SILENCE_SECONDS      advertised ID GUID

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::ParticipantDiscoveryInfo;
using eprosima::fastrtps::rtps::ReaderDiscoveryInfo;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using eprosima::fastrtps::rtps::WriterDiscoveryInfo;
using Bytes = std::vector<unsigned char>;

static std::mutex output;

static void say(const std::string& line)
{
    std::lock_guard<std::mutex> lock(output);
    std::cout << line << std::endl;
}

static std::string hex(const unsigned char* data, size_t count)
{
    std::ostringstream text;
    text << std::hex << std::setfill('0');
    for (size_t i = 0; i < count; ++i) text << std::setw(2) << static_cast<int>(data[i]);
    return count ? text.str() : "-";
}

static std::string hex(const GUID_t& guid)
{
    return hex(guid.guidPrefix.value, 12) + hex(guid.entityId.value, 4);
}

// A type of any name whose samples are bytes: what is sent is what was given, header included.
class Raw : public TopicDataType
{
public:
    explicit Raw(const std::string& name)
    {
        setName(name.c_str());
        m_typeSize = 1024;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool serialize(void* data, SerializedPayload_t* payload) override
    {
        const Bytes& bytes = *static_cast<Bytes*>(data);
        payload->encapsulation = CDR_LE;
        payload->length = static_cast<uint32_t>(bytes.size());
        std::memcpy(payload->data, bytes.data(), bytes.size());
        return true;
    }

    bool deserialize(SerializedPayload_t* payload, void* data) override
    {
        static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void* data) override
    {
        return [data]() { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
    }

    void* createData() override { return new Bytes; }
    void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
    bool getKey(void*, eprosima::fastrtps::rtps::InstanceHandle_t*, bool) override { return false; }
};

class Discovery : public DomainParticipantListener
{
    void on_participant_discovery(DomainParticipant*, ParticipantDiscoveryInfo&& found) override
    {
        const bool alive = found.status <= ParticipantDiscoveryInfo::CHANGED_QOS_PARTICIPANT;
        const auto& user = found.info.m_userData;
        say(std::string("participant ") + (alive ? "alive " : "gone ") + hex(found.info.m_guid) + " "
            + hex(user.data(), user.size()));
    }

    void on_publisher_discovery(DomainParticipant*, WriterDiscoveryInfo&& found) override
    {
        endpoint("writer", found.status <= WriterDiscoveryInfo::CHANGED_QOS_WRITER, found.info);
    }

    void on_subscriber_discovery(DomainParticipant*, ReaderDiscoveryInfo&& found) override
    {
        endpoint("reader", found.status <= ReaderDiscoveryInfo::CHANGED_QOS_READER, found.info);
    }

    template<typename Proxy>
    static void endpoint(const char* kind, bool alive, const Proxy& proxy)
    {
        const auto& user = proxy.m_qos.m_userData;
        std::ostringstream line;
        line << kind << (alive ? " alive " : " gone ") << hex(proxy.guid()) << " " << proxy.topicName() << " "
             << proxy.typeName() << " " << hex(user.data(), user.size()) << " "
             << (proxy.m_qos.m_reliability.kind == RELIABLE_RELIABILITY_QOS ? "reliable" : "best_effort") << " "
             << (proxy.m_qos.m_durability.kind == VOLATILE_DURABILITY_QOS ? "volatile" : "transient_local");
        say(line.str());
    }
};

enum class Use { Keep, Count, Stall };

// How many samples came in a stretch of time, and how long it was silent at most.
class Tally
{
    using Clock = std::chrono::steady_clock;

public:
    void add()
    {
        std::lock_guard<std::mutex> lock(turn_);
        ++count_;
        listen();
    }

    // What came since the last report.
    std::string report()
    {
        std::lock_guard<std::mutex> lock(turn_);
        listen();
        std::ostringstream text;
        text << count_ << " " << seconds(begin_, last_) << " " << silence_;
        begin_ = last_;
        count_ = 0;
        silence_ = 0;
        return text.str();
    }

private:
    static double seconds(Clock::time_point from, Clock::time_point to)
    {
        return std::chrono::duration<double>(to - from).count();
    }

    void listen()
    {
        const auto now = Clock::now();
        silence_ = std::max(silence_, seconds(last_, now));
        last_ = now;
    }

    std::mutex turn_;
    Clock::time_point begin_ = Clock::now(), last_ = begin_;
    double silence_ = 0;
    int count_ = 0;
};

class Reading : public DataReaderListener
{
public:
    Reading(std::string id, std::string folder, Use use) : id_(std::move(id)), folder_(std::move(folder)), use_(use) {}

    void on_data_available(DataReader* reader) override
    {
        Bytes bytes;
        SampleInfo info;
        while (use_ != Use::Stall && reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK)
        {
            // Fast DDS 2.9 hands out an empty sample where the writer dropped one of which only a piece had arrived.
            if (!info.valid_data || bytes.empty()) continue;
            if (use_ == Use::Keep) keep(bytes);
            else tally_.add();
        }
    }

    void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override
    {
        say("matched " + id_ + " " + std::to_string(status.current_count));
    }

    void on_requested_incompatible_qos(DataReader*, const RequestedIncompatibleQosStatus&) override
    {
        say("incompatible " + id_);
    }

    void report() { say("counted " + id_ + " " + tally_.report()); }

private:
    void keep(const Bytes& bytes)
    {
        const std::string file = folder_ + "/" + id_ + "-" + std::to_string(count_++) + ".cdr";
        std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        say("sample " + id_ + " " + std::to_string(bytes.size()) + " " + file);
    }

    std::string id_, folder_;
    Use use_;
    Tally tally_;
    int count_ = 0;
};

class Writing : public DataWriterListener
{
public:
    explicit Writing(std::string id) : id_(std::move(id)) {}

    void on_publication_matched(DataWriter*, const PublicationMatchedStatus& status) override
    {
        say("matched " + id_ + " " + std::to_string(status.current_count));
    }

    void on_offered_incompatible_qos(DataWriter*, const OfferedIncompatibleQosStatus&) override
    {
        say("incompatible " + id_);
    }

private:
    std::string id_;
};

struct Endpoint
{
    std::string id, topic, type, reliability = "reliable", durability = "volatile", user = "-";
    int depth = 1;

    explicit Endpoint(std::istream& words) { words >> id >> topic >> type >> reliability >> durability >> depth >> user; }

    template<typename Qos>
    void apply(Qos& qos) const
    {
        qos.reliability().kind = reliability == "reliable" ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
        qos.durability().kind = durability == "volatile" ? VOLATILE_DURABILITY_QOS : TRANSIENT_LOCAL_DURABILITY_QOS;
        qos.history().kind = KEEP_LAST_HISTORY_QOS;
        qos.history().depth = depth;
        qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
        if (user != "-") qos.user_data().data_vec(Bytes(user.begin(), user.end()));
    }
};

class Peer
{
public:
    Peer(uint32_t domain, std::string folder, bool anywhere) : folder_(std::move(folder))
    {
        DomainParticipantQos qos;
        auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
        if (!anywhere) udp->interfaceWhiteList.emplace_back("127.0.0.1");
        udp->receiveBufferSize = 4 << 20;
        qos.transport().use_builtin_transports = false;
        qos.transport().user_transports.push_back(udp);
        Locator_t loopback;
        IPLocator::setIPv4(loopback, 127, 0, 0, 1);
        qos.wire_protocol().builtin.initialPeersList.push_back(loopback);
        // Any unicast locator of our own keeps Fast DDS from adding its default multicast one.
        qos.wire_protocol().builtin.metatrafficUnicastLocatorList.push_back(Locator_t());
        const std::string enclave = "enclave=/;";
        qos.user_data().data_vec(Bytes(enclave.begin(), enclave.end()));
        auto* factory = DomainParticipantFactory::get_instance();
        participant_ = factory->create_participant(domain, qos, &discovery_, StatusMask::none());
        if (!participant_) throw std::runtime_error("no participant");
        publisher_ = participant_->create_publisher(PUBLISHER_QOS_DEFAULT);
        subscriber_ = participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    }

    ~Peer()
    {
        participant_->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(participant_);
    }

    bool obey(const std::string& line)
    {
        std::istringstream words(line);
        std::string verb;
        words >> verb;
        if (verb == "quit") return false;
        const bool done = verb == "subscribe" ? subscribe(Endpoint(words), Use::Keep)
            : verb == "count" ? subscribe(Endpoint(words), Use::Count)
            : verb == "stall" ? subscribe(Endpoint(words), Use::Stall)
            : verb == "counted" ? report(words)
            : verb == "advertise" ? advertise(Endpoint(words))
            : verb == "write" && write(words);
        if (!done) say("failed " + line);
        return true;
    }

private:
    bool subscribe(const Endpoint& endpoint, Use use)
    {
        DataReaderQos qos;
        endpoint.apply(qos);
        if (use == Use::Stall)
        {
            qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
            qos.history().kind = KEEP_ALL_HISTORY_QOS;
            qos.resource_limits().max_samples = 1;
            qos.resource_limits().max_instances = 1;
            qos.resource_limits().max_samples_per_instance = 1;
            qos.resource_limits().allocated_samples = 1;
        }
        auto& reading = reading_[endpoint.id];
        if (reading) return false;
        reading.reset(new Reading(endpoint.id, folder_, use));
        return subscriber_->create_datareader(topic(endpoint), qos, reading.get()) != nullptr;
    }

    bool report(std::istream& words)
    {
        std::string id;
        words >> id;
        const auto reading = reading_.find(id);
        if (reading == reading_.end()) return false;
        reading->second->report();
        return true;
    }

    bool advertise(const Endpoint& endpoint)
    {
        DataWriterQos qos;
        endpoint.apply(qos);
        writing_.emplace_back(new Writing(endpoint.id));
        auto* writer = publisher_->create_datawriter(topic(endpoint), qos, writing_.back().get());
        if (!writer) return false;
        writers_[endpoint.id] = writer;
        say("advertised " + endpoint.id + " " + hex(writer->guid()));
        return true;
    }

    bool write(std::istream& words)
    {
        std::string id, file;
        words >> id >> file;
        std::ifstream stream(file, std::ios::binary);
        Bytes bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
        const auto writer = writers_.find(id);
        return writer != writers_.end() && writer->second->write(&bytes);
    }

    Topic* topic(const Endpoint& endpoint)
    {
        if (!participant_->find_type(endpoint.type)) participant_->register_type(TypeSupport(new Raw(endpoint.type)));
        auto& known = topics_[endpoint.topic];
        if (!known) known = participant_->create_topic(endpoint.topic, endpoint.type, TOPIC_QOS_DEFAULT);
        return known;
    }

    std::string folder_;
    Discovery discovery_;
    DomainParticipant* participant_;
    Publisher* publisher_;
    Subscriber* subscriber_;
    std::map<std::string, std::unique_ptr<Reading>> reading_;
    std::vector<std::unique_ptr<Writing>> writing_;
    std::map<std::string, Topic*> topics_;
    std::map<std::string, DataWriter*> writers_;
};

int main(int count, char** words)
{
    if (count < 3) return 2;
    Peer peer(static_cast<uint32_t>(std::stoul(words[1])), words[2], count > 3);
    say("ready");
    std::string line;
    while (std::getline(std::cin, line) && peer.obey(line)) {}
    return 0;
}
