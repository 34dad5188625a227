<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko_KR" sourcelanguage="en_GB">
<context>
    <name>AccuracyModels</name>
    <message>
        <source>records of</source>
        <translation>기록 종류</translation>
    </message>
    <message>
        <source>figure</source>
        <translation>항목</translation>
    </message>
    <message>
        <source>records</source>
        <translation>건수</translation>
    </message>
    <message>
        <source>mean |error|</source>
        <translation>평균 |오차|</translation>
    </message>
    <message>
        <source>mean error</source>
        <translation>평균 오차</translation>
    </message>
    <message>
        <source>largest</source>
        <translation>최대</translation>
    </message>
    <message>
        <source>of record</source>
        <translation>해당 기록</translation>
    </message>
    <message>
        <source>record</source>
        <translation>기록</translation>
    </message>
    <message>
        <source>framework</source>
        <translation>프레임워크</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>예측</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>실측</translation>
    </message>
    <message>
        <source>error</source>
        <translation>오차</translation>
    </message>
    <message>
        <source>all</source>
        <translation>전체</translation>
    </message>
    <message>
        <source>over %1 records: (predicted − measured) ÷ measured of each; measured: read from records under data/measurements</source>
        <translation>기록 %1건 각각의 (예측 − 실측) ÷ 실측. 실측은 data/measurements의 기록에서</translation>
    </message>
    <message>
        <source>(%1 − %2) ÷ %2 = %3; predicted for the record&apos;s own job, measured: read from the record %4</source>
        <translation>(%1 − %2) ÷ %2 = %3. 예측은 기록 자체의 작업에 대한 것, 실측은 기록 %4에서</translation>
    </message>
    <message>
        <source>allocated peak</source>
        <translation>할당 피크</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>예약</translation>
    </message>
    <message>
        <source>each GPU</source>
        <translation>GPU당</translation>
    </message>
    <message>
        <source>time of a step</source>
        <translation>스텝 시간</translation>
    </message>
</context>
<context>
    <name>CatalogueModels</name>
    <message>
        <source>model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>parameters</source>
        <translation>파라미터 수</translation>
    </message>
    <message>
        <source>family</source>
        <translation>계열</translation>
    </message>
    <message>
        <source>also found as</source>
        <translation>다른 이름</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>usable memory</source>
        <translation>사용 가능한 메모리</translation>
    </message>
    <message>
        <source>memory bandwidth</source>
        <translation>메모리 대역폭</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>근거</translation>
    </message>
    <message>
        <source>%1 GB/s</source>
        <translation>%1 GB/s</translation>
    </message>
    <message>
        <source>confirmed by sources</source>
        <translation>출처로 확인됨</translation>
    </message>
    <message>
        <source>partly unverified</source>
        <translation>일부 미확인</translation>
    </message>
    <message>
        <source>machine</source>
        <translation>머신</translation>
    </message>
    <message>
        <source>provider</source>
        <translation>제공사</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>host memory</source>
        <translation>호스트 메모리</translation>
    </message>
    <message>
        <source>tensor</source>
        <translation>텐서</translation>
    </message>
    <message>
        <source>shape</source>
        <translation>형상</translation>
    </message>
    <message>
        <source>times</source>
        <translation>횟수</translation>
    </message>
</context>
<context>
    <name>EstimateModels</name>
    <message>
        <source>not used</source>
        <translation>사용 안 함</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>%1 to spare</source>
        <translation>여유 %1</translation>
    </message>
    <message>
        <source>%1 too much</source>
        <translation>%1 초과</translation>
    </message>
    <message>
        <source>what a node has is not known</source>
        <translation>노드의 용량을 알 수 없습니다</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>; upper bound %1</source>
        <translation>, 상한 %1</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>호스트</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>계산</translation>
    </message>
    <message>
        <source>operations of the step at the rates of this GPU, operation by operation</source>
        <translation>스텝의 연산을 하나씩 이 GPU의 성능으로 계산한 값</translation>
    </message>
    <message>
        <source>exposed communication</source>
        <translation>가려지지 않은 통신</translation>
    </message>
    <message>
        <source>bytes sent over the links, less what hides behind computing</source>
        <translation>링크로 보내는 양에서 계산에 가려지는 몫을 뺀 값</translation>
    </message>
    <message>
        <source>copies</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>bytes copied to and from the host and NVMe</source>
        <translation>호스트와 NVMe 사이에서 복사하는 양</translation>
    </message>
    <message>
        <source>forward pass</source>
        <translation>순전파</translation>
    </message>
    <message>
        <source>backward pass</source>
        <translation>역전파</translation>
    </message>
    <message>
        <source>clipping and optimizer step</source>
        <translation>클리핑과 옵티마이저</translation>
    </message>
    <message>
        <source>model built</source>
        <translation>모델 생성 후</translation>
    </message>
    <message>
        <source>after the model is built</source>
        <translation>모델 생성 후</translation>
    </message>
    <message>
        <source>at the peak of this phase</source>
        <translation>이 단계의 피크</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>경고</translation>
    </message>
    <message>
        <source>note</source>
        <translation>참고</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>표시</translation>
    </message>
    <message>
        <source>The largest part, %1, is %2.</source>
        <translation>가장 큰 부분은 &quot;%1&quot;: %2.</translation>
    </message>
    <message>
        <source>what</source>
        <translation>내용</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>용량</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>근거</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>옵티마이저</translation>
    </message>
    <message>
        <source>parameters that are updated, at the rate of what updates them</source>
        <translation>갱신하는 파라미터를 갱신하는 장치의 속도로 계산한 값</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>대기</translation>
    </message>
    <message>
        <source>launches and waiting that nothing hides</source>
        <translation>아무것에도 가려지지 않은 실행 지연과 대기</translation>
    </message>
    <message>
        <source>pipeline</source>
        <translation>파이프라인</translation>
    </message>
    <message>
        <source>waiting for other pipeline stages</source>
        <translation>다른 파이프라인 단계를 기다리는 시간</translation>
    </message>
    <message>
        <source>prompt</source>
        <translation>프롬프트</translation>
    </message>
    <message>
        <source>new tokens</source>
        <translation>새 토큰</translation>
    </message>
    <message>
        <source>generation</source>
        <translation>생성</translation>
    </message>
    <message>
        <source>scoring</source>
        <translation>채점</translation>
    </message>
    <message>
        <source>actor&apos;s training</source>
        <translation>액터 학습</translation>
    </message>
    <message>
        <source>critic&apos;s training</source>
        <translation>크리틱 학습</translation>
    </message>
</context>
<context>
    <name>Findings</name>
    <message>
        <source>error</source>
        <translation>오류</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>경고</translation>
    </message>
    <message>
        <source>note</source>
        <translation>참고</translation>
    </message>
    <message>
        <source>auto</source>
        <translation>auto</translation>
    </message>
    <message>
        <source>becomes %1: %2</source>
        <translation>%1(으)로 정해짐: %2</translation>
    </message>
    <message>
        <source>what</source>
        <translation>내용</translation>
    </message>
    <message>
        <source>key</source>
        <translation>키</translation>
    </message>
    <message>
        <source>finding</source>
        <translation>발견 사항</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>host</source>
        <translation>호스트</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>time %1%2 %</source>
        <translation>시간 %1%2 %</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>없음</translation>
    </message>
    <message>
        <source> (line %1)</source>
        <translation> (%1행)</translation>
    </message>
    <message>
        <source>The key as it is, against being without it: %1</source>
        <translation>이 키가 없을 때와의 차이: %1</translation>
    </message>
    <message>
        <source>Fix: %1</source>
        <translation>해결: %1</translation>
    </message>
    <message>
        <source>Source: %1 [%2]</source>
        <translation>출처: %1 [%2]</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>비용</translation>
    </message>
    <message>
        <source>%1; without it: off</source>
        <translation>%1. 없으면: 꺼짐</translation>
    </message>
    <message>
        <source>%1; without it: %2</source>
        <translation>%1. 없으면: %2</translation>
    </message>
    <message>
        <source>It cannot be left out: %1</source>
        <translation>생략할 수 없음: %1</translation>
    </message>
    <message>
        <source>%1; as it is: %2 of each GPU</source>
        <translation>%1. 현재: GPU당 %2</translation>
    </message>
    <message>
        <source>costs</source>
        <translation>비용</translation>
    </message>
    <message>
        <source>%1, %2, %3</source>
        <translation>%1, %2, %3</translation>
    </message>
    <message>
        <source>1 error</source>
        <translation>오류 1건</translation>
    </message>
    <message>
        <source>%1 errors</source>
        <translation>오류 %1건</translation>
    </message>
    <message>
        <source>1 warning</source>
        <translation>경고 1건</translation>
    </message>
    <message>
        <source>%1 warnings</source>
        <translation>경고 %1건</translation>
    </message>
    <message>
        <source>1 note</source>
        <translation>참고 1건</translation>
    </message>
    <message>
        <source>%1 notes</source>
        <translation>참고 %1건</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>Fixes</name>
    <message>
        <source>%1 → %2 of each GPU</source>
        <translation>GPU당 %1 → %2</translation>
    </message>
    <message>
        <source>, %1 of each host</source>
        <translation>, 호스트당 %1</translation>
    </message>
    <message>
        <source>; about as fast</source>
        <translation>. 속도는 거의 같음</translation>
    </message>
    <message>
        <source>; %1× the time for each token</source>
        <translation>. 토큰당 시간 %1배</translation>
    </message>
    <message>
        <source>finding what would help…</source>
        <translation>도움이 될 변경을 찾는 중…</translation>
    </message>
    <message>
        <source>Nothing in this plan needs to be made lighter.</source>
        <translation>이 계획에서 줄여야 할 것은 없습니다.</translation>
    </message>
    <message>
        <source>Nothing in this plan can be made lighter: it takes more GPUs or a smaller model.</source>
        <translation>이 계획에서 더 줄일 수 있는 것이 없습니다. GPU를 늘리거나 더 작은 모델을 쓰세요.</translation>
    </message>
</context>
<context>
    <name>JobWords</name>
    <message>
        <source>%1 (%2 parameters)</source>
        <translation>%1(파라미터 %2)</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <translation>%1, %2</translation>
    </message>
    <message>
        <source>%1 of %2 on %3</source>
        <translation>%1: %2, %3</translation>
    </message>
    <message>
        <source>tensor %1</source>
        <translation>텐서 %1</translation>
    </message>
    <message>
        <source>pipeline %1</source>
        <translation>파이프라인 %1</translation>
    </message>
    <message>
        <source>sequence %1</source>
        <translation>시퀀스 %1</translation>
    </message>
    <message>
        <source>context %1</source>
        <translation>컨텍스트 %1</translation>
    </message>
    <message>
        <source>data %1</source>
        <translation>데이터 %1</translation>
    </message>
    <message>
        <source>, %1 chunks a stage</source>
        <translation>, 단계당 청크 %1개</translation>
    </message>
    <message>
        <source>, experts over %1</source>
        <translation>, 전문가를 GPU %1개에 분할</translation>
    </message>
    <message>
        <source>LoRA of rank %1</source>
        <translation>LoRA(랭크 %1)</translation>
    </message>
    <message>
        <source>full fine-tuning</source>
        <translation>전체 파라미터 학습</translation>
    </message>
    <message>
        <source>%1 with %2, %3, %4; micro-batch %5 × %6 tokens</source>
        <translation>%1, %2, %3, %4. 마이크로배치 %5 × %6 토큰</translation>
    </message>
    <message>
        <source>, %1 accumulation steps</source>
        <translation>, 기울기 누적 %1회</translation>
    </message>
    <message>
        <source>, every block checkpointed</source>
        <translation>, 모든 블록 체크포인트</translation>
    </message>
    <message>
        <source>, selective checkpointing</source>
        <translation>, 선택적 체크포인트</translation>
    </message>
    <message>
        <source>, no activation checkpointing</source>
        <translation>, 체크포인트 없음</translation>
    </message>
    <message>
        <source>, eager attention</source>
        <translation>, eager 어텐션</translation>
    </message>
    <message>
        <source>, fused attention</source>
        <translation>, 융합 어텐션</translation>
    </message>
    <message>
        <source>, %1</source>
        <translation>, %1</translation>
    </message>
    <message>
        <source>inference with DeepSpeed-Inference&apos;s kernels over %1 GPUs</source>
        <translation>DeepSpeed-Inference 커널로 추론(GPU %1개)</translation>
    </message>
    <message>
        <source>ZeRO-Inference, %1</source>
        <translation>ZeRO-Inference, %1</translation>
    </message>
    <message>
        <source>inference with transformers</source>
        <translation>transformers로 추론</translation>
    </message>
    <message>
        <source>, fp8 KV cache</source>
        <translation>, fp8 KV 캐시</translation>
    </message>
    <message>
        <source>; %1 × (%2 tokens of prompt + %3 new)</source>
        <translation>; %1 × (프롬프트 %2 + 새 토큰 %3)</translation>
    </message>
    <message>
        <source>actor</source>
        <translation>액터</translation>
    </message>
    <message>
        <source>critic</source>
        <translation>크리틱</translation>
    </message>
    <message>
        <source>reference</source>
        <translation>참조 모델</translation>
    </message>
    <message>
        <source>reward model</source>
        <translation>보상 모델</translation>
    </message>
    <message>
        <source>frozen</source>
        <translation>고정</translation>
    </message>
    <message>
        <source>trained</source>
        <translation>학습</translation>
    </message>
    <message>
        <source>%1: %2, %3 with %4, %5</source>
        <translation>%1: %2, %3, %4, %5</translation>
    </message>
    <message>
        <source>, on the host while idle</source>
        <translation>, 쉬는 동안 호스트에</translation>
    </message>
    <message>
        <source>micro-batch %1 × %2 tokens</source>
        <translation>마이크로배치 %1 × %2 토큰</translation>
    </message>
    <message>
        <source>, %1 of them generated, %2 sequences at once</source>
        <translation>, 그중 %1개 생성, 한 번에 %2 시퀀스</translation>
    </message>
    <message>
        <source>, hybrid engine</source>
        <translation>, 하이브리드 엔진</translation>
    </message>
    <message>
        <source>; %1 for a billion tokens</source>
        <translation>. 10억 토큰당 %1</translation>
    </message>
    <message>
        <source>; cost: the price of a node is not known</source>
        <translation>. 비용: 노드의 가격을 알 수 없음</translation>
    </message>
    <message>
        <source>prompt: about %1, %2 tokens/s; new tokens: about %3, %4 tokens/s, at most %5 at datasheet rates</source>
        <translation>프롬프트: 약 %1, 초당 %2 토큰; 새 토큰: 약 %3, 초당 %4 토큰(데이터시트 성능으로 최대 %5)</translation>
    </message>
    <message>
        <source>not estimated: the GPU&apos;s rates are not known</source>
        <translation>GPU의 성능을 알 수 없어 추정하지 않았습니다</translation>
    </message>
    <message>
        <source>about %1 a step, %2 tokens/s on all GPUs, %3 % of their dense peak</source>
        <translation>스텝당 약 %1, 전체 GPU에서 초당 %2 토큰, 밀집 피크의 %3 %</translation>
    </message>
    <message>
        <source>about %1 an iteration (%2), %3 tokens/s on all GPUs, %4 % of their dense peak</source>
        <translation>반복 1회 약 %1(%2), 전체 GPU에서 초당 %3 토큰, 밀집 피크의 %4 %</translation>
    </message>
</context>
<context>
    <name>MachineFields</name>
    <message>
        <source>given</source>
        <translation>지정</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>알 수 없음</translation>
    </message>
    <message>
        <source>%1, by the catalogue:</source>
        <translation>%1, 카탈로그의 출처:</translation>
    </message>
    <message>
        <source>GPUs in a node</source>
        <translation>노드의 GPU 수</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>노드 수</translation>
    </message>
    <message>
        <source>catalogue, not verified</source>
        <translation>카탈로그(미확인)</translation>
    </message>
    <message>
        <source>catalogue</source>
        <translation>카탈로그</translation>
    </message>
    <message>
        <source>Usable memory of a GPU, GiB</source>
        <translation>GPU의 사용 가능한 메모리 (GiB)</translation>
    </message>
    <message>
        <source>Its bandwidth, GB/s</source>
        <translation>메모리 대역폭 (GB/s)</translation>
    </message>
    <message>
        <source>Dense bf16 of a GPU, TFLOP/s</source>
        <translation>GPU의 밀집 bf16 (TFLOP/s)</translation>
    </message>
    <message>
        <source>GPU to host, GB/s</source>
        <translation>GPU–호스트 간 (GB/s)</translation>
    </message>
    <message>
        <source>assumed</source>
        <translation>가정</translation>
    </message>
    <message>
        <source>Between GPUs, GB/s</source>
        <translation>GPU 사이 (GB/s)</translation>
    </message>
    <message>
        <source>Between nodes, GB/s a GPU</source>
        <translation>노드 사이 (GPU당 GB/s)</translation>
    </message>
    <message>
        <source>Host memory of a node, GiB</source>
        <translation>노드의 호스트 메모리 (GiB)</translation>
    </message>
    <message>
        <source>NVMe of a node, GiB</source>
        <translation>노드의 NVMe (GiB)</translation>
    </message>
    <message>
        <source>NVMe reads, GB/s</source>
        <translation>NVMe 읽기 (GB/s)</translation>
    </message>
    <message>
        <source>NVMe writes, GB/s</source>
        <translation>NVMe 쓰기 (GB/s)</translation>
    </message>
    <message>
        <source>Price of a node, an hour</source>
        <translation>노드의 시간당 가격</translation>
    </message>
</context>
<context>
    <name>Messages</name>
    <message>
        <source>; expected %1</source>
        <translation>. 올바른 값: %1</translation>
    </message>
    <message>
        <source>; did you mean &apos;%1&apos;?</source>
        <translation>. &apos;%1&apos;을(를) 뜻하셨나요?</translation>
    </message>
</context>
<context>
    <name>Provenance</name>
    <message>
        <source>exact: counted from the model and the plan</source>
        <translation>확정: 모델과 계획에서 센 값</translation>
    </message>
    <message>
        <source>modelled: a closed form, or simulated (docs/memory.md)</source>
        <translation>모델: 수식 또는 시뮬레이션 (docs/memory.md)</translation>
    </message>
    <message>
        <source>calibrated: fitted to measurements</source>
        <translation>보정: 실측에 맞춘 값</translation>
    </message>
    <message>
        <source>measured: read from a record</source>
        <translation>실측: 기록에서 읽은 값</translation>
    </message>
    <message>
        <source>assumed: a default</source>
        <translation>가정: 기본값</translation>
    </message>
    <message>
        <source>%1 at the peak: %2</source>
        <translation>피크의 &quot;%1&quot;: %2</translation>
    </message>
    <message>
        <source>%1 parameters, kept on this GPU: %2, which is %3 B for each of them</source>
        <translation>파라미터 %1개. 이 GPU에 두는 양은 %2, 1개당 %3 B</translation>
    </message>
    <message>
        <source>
spread over %1 GPUs, padding included</source>
        <translation>
GPU %1개에 분할(패딩 포함)</translation>
    </message>
    <message>
        <source>reserved − allocated = %1 − %2: PyTorch&apos;s caching allocator, run over every block of the step</source>
        <translation>예약 − 할당 = %1 − %2: PyTorch 캐싱 할당자를 스텝의 모든 블록에 대해 실행</translation>
    </message>
    <message>
        <source>a constant of the process</source>
        <translation>프로세스의 상수</translation>
    </message>
    <message>
        <source>%1&apos;s kernels, and the channels of each communicator (of how many ranks):</source>
        <translation>%1의 커널과 각 커뮤니케이터(랭크 수)의 채널:</translation>
    </message>
    <message>
        <source>alive when the step&apos;s allocations peak, in %1; %2 between steps</source>
        <translation>할당이 최대가 되는 시점(%1)에 살아 있음. 스텝 사이에는 %2</translation>
    </message>
    <message>
        <source>reserved %1 + %8 context and %9 %2 = %3
of it allocated: %4; upper bound %5: what a real run is not expected to pass
usable %6 of %7: what a process can allocate</source>
        <translation>예약 %1 + %8 컨텍스트와 %9 %2 = %3
그중 할당 %4. 상한 %5: 실제 실행이 넘지 않을 것으로 보는 값
사용 가능 %6 / %7: 프로세스가 할당할 수 있는 양</translation>
    </message>
    <message>
        <source>Memory of the fullest GPU, as nvidia-smi shows it</source>
        <translation>가장 많이 쓰는 GPU의 메모리(nvidia-smi 기준)</translation>
    </message>
    <message>
        <source>modelled; usable memory: %1</source>
        <translation>모델. 사용 가능한 메모리: %1</translation>
    </message>
    <message>
        <source>Memory of each host: %1</source>
        <translation>각 호스트의 메모리: %1</translation>
    </message>
    <message>
        <source>pageable %1 + pinned %2, of all processes of a node</source>
        <translation>페이징 가능 %1 + 고정 %2, 노드의 모든 프로세스 합계</translation>
    </message>
    <message>
        <source>NVMe of each node: %1</source>
        <translation>각 노드의 NVMe: %1</translation>
    </message>
    <message>
        <source>what the processes of a node swap out</source>
        <translation>노드의 프로세스가 내보내는 양</translation>
    </message>
    <message>
        <source>Live tensors %1: %2</source>
        <translation>살아 있는 텐서(%1): %2</translation>
    </message>
    <message>
        <source>the step simulated allocation by allocation, %1 turns of growth in all</source>
        <translation>스텝을 할당 하나하나 시뮬레이션. 증감 전환점 %1개</translation>
    </message>
    <message>
        <source>%1 in collectives among %2 GPUs; with ring algorithms each sends %3</source>
        <translation>GPU %2개의 집합 통신 %1. 링 알고리즘으로 각 GPU가 %3 전송</translation>
    </message>
    <message>
        <source>%1 copied in a step</source>
        <translation>스텝당 %1 복사</translation>
    </message>
    <message>
        <source>Tokens a second</source>
        <translation>초당 토큰 수</translation>
    </message>
    <message>
        <source>%1 GPUs × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5
at datasheet rates, with everything hidden: %6 a step</source>
        <translation>GPU %1개 × 마이크로배치 %2 × %3 토큰 × 기울기 누적 %4회 ÷ %5
공칭 성능에서 모두 가려질 때: 스텝당 %6</translation>
    </message>
    <message>
        <source>Time of a step: %1</source>
        <translation>스텝 시간: %1</translation>
    </message>
    <message>
        <source>GPU: %1 − %2 = %3 saved; the whole plan estimated with the change</source>
        <translation>GPU: %1 − %2 = %3 절약. 변경 후의 계획 전체를 추정한 값</translation>
    </message>
    <message>
        <source>time: a step of %1 ÷ one of %2, for each token: %3×</source>
        <translation>시간: 스텝 %1 ÷ %2, 토큰당 %3배</translation>
    </message>
    <message>
        <source>What it sets</source>
        <translation>설정하는 내용</translation>
    </message>
    <message>
        <source>compute %1 + exposed communication %2 + exposed copies %3 + optimizer %4 + pipeline %5 + idle %6</source>
        <translation>계산 %1 + 드러난 통신 %2 + 드러난 복사 %3 + 옵티마이저 %4 + 파이프라인 %5 + 유휴 %6</translation>
    </message>
    <message>
        <source>%1 sequences × %2 new tokens ÷ %3, after %4 for the prompts
at datasheet rates: %5 for the new tokens</source>
        <translation>시퀀스 %1 × 새 토큰 %2 ÷ %3(프롬프트에 %4 걸린 뒤)
데이터시트 성능으로 새 토큰에 %5</translation>
    </message>
    <message>
        <source>data %1 × micro-batch %2 × %3 tokens × %4 accumulation steps ÷ %5
at datasheet rates, with everything hidden: %6 a step</source>
        <translation>데이터 %1 × 마이크로배치 %2 × %3 토큰 × 누적 %4회 ÷ %5
데이터시트 성능으로 모두 숨겨지면: 스텝당 %6</translation>
    </message>
</context>
<context>
    <name>TrainingFields</name>
    <message>
        <source>Micro-batch</source>
        <translation>마이크로배치</translation>
    </message>
    <message>
        <source>Sequence length</source>
        <translation>시퀀스 길이</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>ZeRO stage</source>
        <translation>ZeRO 단계</translation>
    </message>
    <message>
        <source>Offload</source>
        <translation>오프로드</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>optimizer to host</source>
        <translation>옵티마이저를 호스트로</translation>
    </message>
    <message>
        <source>all to host</source>
        <translation>모두 호스트로</translation>
    </message>
    <message>
        <source>all to NVMe</source>
        <translation>모두 NVMe로</translation>
    </message>
    <message>
        <source>Checkpointing</source>
        <translation>체크포인트</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>selective</source>
        <translation>선택적</translation>
    </message>
    <message>
        <source>every block</source>
        <translation>모든 블록</translation>
    </message>
    <message>
        <source>Framework</source>
        <translation>프레임워크</translation>
    </message>
    <message>
        <source>plain PyTorch</source>
        <translation>PyTorch 단독</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>방법</translation>
    </message>
    <message>
        <source>full fine-tuning</source>
        <translation>전체 파라미터 학습</translation>
    </message>
    <message>
        <source>LoRA rank</source>
        <translation>LoRA 랭크</translation>
    </message>
    <message>
        <source>Accumulation steps</source>
        <translation>기울기 누적 횟수</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>정밀도</translation>
    </message>
    <message>
        <source>Optimizer</source>
        <translation>옵티마이저</translation>
    </message>
    <message>
        <source>Attention</source>
        <translation>어텐션</translation>
    </message>
    <message>
        <source>fused (SDPA)</source>
        <translation>융합 (SDPA)</translation>
    </message>
    <message>
        <source>eager</source>
        <translation>eager</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>손실</translation>
    </message>
    <message>
        <source>cross-entropy</source>
        <translation>교차 엔트로피</translation>
    </message>
    <message>
        <source>fused with the head</source>
        <translation>출력층과 융합</translation>
    </message>
    <message>
        <source>shardplan-validate&apos;s engine</source>
        <translation>shardplan-validate 엔진</translation>
    </message>
    <message>
        <source>Task</source>
        <translation>작업 종류</translation>
    </message>
    <message>
        <source>training</source>
        <translation>학습</translation>
    </message>
    <message>
        <source>generation</source>
        <translation>생성</translation>
    </message>
    <message>
        <source>reinforcement learning, preferences</source>
        <translation>강화 학습, 선호 학습</translation>
    </message>
    <message>
        <source>Algorithm</source>
        <translation>알고리즘</translation>
    </message>
    <message>
        <source>supervised fine-tuning</source>
        <translation>지도 미세조정</translation>
    </message>
    <message>
        <source>reward model</source>
        <translation>보상 모델</translation>
    </message>
    <message>
        <source>Sequences</source>
        <translation>시퀀스 수</translation>
    </message>
    <message>
        <source>Prompt length</source>
        <translation>프롬프트 길이</translation>
    </message>
    <message>
        <source>New tokens</source>
        <translation>새 토큰</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>가중치</translation>
    </message>
    <message>
        <source>as computed</source>
        <translation>계산과 같은 형식</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 캐시</translation>
    </message>
    <message>
        <source>Weights are kept</source>
        <translation>가중치 위치</translation>
    </message>
    <message>
        <source>on the GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>on the host</source>
        <translation>호스트</translation>
    </message>
    <message>
        <source>on NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>Tensor parallel</source>
        <translation>텐서 병렬</translation>
    </message>
    <message>
        <source>Pipeline stages</source>
        <translation>파이프라인 단계</translation>
    </message>
    <message>
        <source>Chunks a stage</source>
        <translation>단계당 청크</translation>
    </message>
    <message>
        <source>Ulysses (sequence)</source>
        <translation>Ulysses(시퀀스)</translation>
    </message>
    <message>
        <source>Context parallel</source>
        <translation>컨텍스트 병렬</translation>
    </message>
    <message>
        <source>Expert parallel</source>
        <translation>전문가 병렬</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::AccuracyPage</name>
    <message>
        <source>Accuracy</source>
        <translation>정확도</translation>
    </message>
    <message>
        <source>Comparing with the records</source>
        <translation>기록과 비교 중</translation>
    </message>
    <message>
        <source>Errors by framework</source>
        <translation>프레임워크별 오차</translation>
    </message>
    <message>
        <source>Records, worst first</source>
        <translation>기록(오차가 큰 순)</translation>
    </message>
    <message>
        <source>Comparing every built-in record with its prediction…</source>
        <translation>내장된 기록을 모두 예측과 비교하고 있습니다…</translation>
    </message>
    <message>
        <source>%1 measured training steps, each against what is predicted for its job. Errors are (predicted − measured) ÷ measured.</source>
        <translation>실측한 학습 스텝 %1건을 각 작업의 예측과 비교합니다. 오차는 (예측 − 실측) ÷ 실측입니다.</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ComparePage</name>
    <message>
        <source>Compare</source>
        <translation>비교</translation>
    </message>
    <message>
        <source>Plans to compare, four at most</source>
        <translation>비교할 계획(최대 4개)</translation>
    </message>
    <message>
        <source>&amp;Keep this plan for comparison</source>
        <translation>이 계획을 비교에 남기기(&amp;K)</translation>
    </message>
    <message>
        <source>Plans side by side</source>
        <translation>계획 나란히 비교</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::FieldForm</name>
    <message>
        <source>given</source>
        <translation>지정</translation>
    </message>
    <message>
        <source>ds_config or default</source>
        <translation>ds_config 또는 기본값</translation>
    </message>
    <message>
        <source>assumed</source>
        <translation>가정</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::FixList</name>
    <message>
        <source>Apply</source>
        <translation>적용</translation>
    </message>
    <message>
        <source>Apply: %1</source>
        <translation>적용: %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::LintPanel</name>
    <message>
        <source>Findings</source>
        <translation>발견 사항</translation>
    </message>
    <message>
        <source>About the chosen finding</source>
        <translation>선택한 결과에 대해</translation>
    </message>
    <message>
        <source>being checked…</source>
        <translation>확인하는 중…</translation>
    </message>
    <message>
        <source>Fix &amp;all (%1)</source>
        <translation>모두 수정 (%1)(&amp;A)</translation>
    </message>
    <message>
        <source>Fi&amp;x this</source>
        <translation>이것을 수정(&amp;X)</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::MachinePage</name>
    <message>
        <source>Machine</source>
        <translation>머신</translation>
    </message>
    <message>
        <source>4xA100-40GB, 2x8xH100, 4x40GB or p4d.24xlarge</source>
        <translation>4xA100-40GB, 2x8xH100, 4x40GB, p4d.24xlarge 등</translation>
    </message>
    <message>
        <source>Which &amp;machine will it run on?</source>
        <translation>어떤 머신에서 실행합니까(&amp;M)</translation>
    </message>
    <message>
        <source>What is known about it</source>
        <translation>머신 정보</translation>
    </message>
    <message>
        <source>&amp;This machine: %1 × %2</source>
        <translation>이 머신(&amp;T): %1 × %2</translation>
    </message>
    <message>
        <source>&amp;This machine: no known GPU was found</source>
        <translation>이 머신(&amp;T): 알려진 GPU가 없습니다</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Machines to rent</source>
        <translation>클라우드 머신</translation>
    </message>
    <message>
        <source>Found here: %1 of host memory, %2 of NVMe.</source>
        <translation>이 머신: 호스트 메모리 %1, NVMe %2.</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::MainWindow</name>
    <message>
        <source>a model&apos;s config.json</source>
        <translation>모델의 config.json</translation>
    </message>
    <message>
        <source>a ds_config.json</source>
        <translation>ds_config.json</translation>
    </message>
    <message>
        <source>‹ &amp;Back</source>
        <translation>‹ 뒤로(&amp;B)</translation>
    </message>
    <message>
        <source>&amp;Next ›</source>
        <translation>다음(&amp;N) ›</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>파일(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;New job</source>
        <translation>새 작업(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Open…</source>
        <translation>열기(&amp;O)…</translation>
    </message>
    <message>
        <source>a job or a configuration</source>
        <translation>작업 또는 설정</translation>
    </message>
    <message>
        <source>&amp;Recent files</source>
        <translation>최근 파일(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Save</source>
        <translation>저장(&amp;S)</translation>
    </message>
    <message>
        <source>Save &amp;as…</source>
        <translation>다른 이름으로 저장(&amp;A)…</translation>
    </message>
    <message>
        <source>Copy the &amp;command line</source>
        <translation>명령줄 복사(&amp;C)</translation>
    </message>
    <message>
        <source>Ctrl+Shift+C</source>
        <translation>Ctrl+Shift+C</translation>
    </message>
    <message>
        <source>Save a &amp;report…</source>
        <translation>보고서 저장(&amp;R)…</translation>
    </message>
    <message>
        <source>Save a &amp;picture of this page…</source>
        <translation>이 페이지의 그림 저장(&amp;P)…</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>종료(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>보기(&amp;V)</translation>
    </message>
    <message>
        <source>Colours of the &amp;system</source>
        <translation>시스템 색상(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Light</source>
        <translation>밝게(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Dark</source>
        <translation>어둡게(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>언어(&amp;L)</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>%1[*] – shardplan</source>
        <translation>%1[*] – shardplan</translation>
    </message>
    <message>
        <source>new job</source>
        <translation>새 작업</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>%1 열기</translation>
    </message>
    <message>
        <source>JSON files (*.json);;All files (*)</source>
        <translation>JSON 파일 (*.json);;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Save the job</source>
        <translation>작업 저장</translation>
    </message>
    <message>
        <source>JSON files (*.json)</source>
        <translation>JSON 파일 (*.json)</translation>
    </message>
    <message>
        <source>Unsaved job</source>
        <translation>저장하지 않은 작업</translation>
    </message>
    <message>
        <source>The job was changed. Save it?</source>
        <translation>작업이 변경되었습니다. 저장할까요?</translation>
    </message>
    <message>
        <source>Save a picture</source>
        <translation>그림 저장</translation>
    </message>
    <message>
        <source>Pictures (*.png)</source>
        <translation>그림 (*.png)</translation>
    </message>
    <message>
        <source>%1 cannot be written</source>
        <translation>%1에 쓸 수 없습니다</translation>
    </message>
    <message>
        <source>Save a report</source>
        <translation>보고서 저장</translation>
    </message>
    <message>
        <source>Web pages (*.html);;Markdown (*.md);;JSON files (*.json);;Tables (*.csv)</source>
        <translation>웹 페이지 (*.html);;Markdown (*.md);;JSON 파일 (*.json);;표 (*.csv)</translation>
    </message>
    <message>
        <source>Wrote %1</source>
        <translation>%1을(를) 썼습니다</translation>
    </message>
    <message>
        <source>Export these files into</source>
        <translation>파일을 내보낼 폴더</translation>
    </message>
    <message>
        <source>Writing the report</source>
        <translation>보고서 쓰는 중</translation>
    </message>
    <message>
        <source>Cancel the report</source>
        <translation>보고서 취소</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ModelPage</name>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>llama-2-7b, 7B, or the path of a config.json</source>
        <translation>llama-2-7b, 7B 또는 config.json의 경로</translation>
    </message>
    <message>
        <source>Which &amp;model will be trained?</source>
        <translation>어떤 모델을 학습합니까(&amp;M)</translation>
    </message>
    <message>
        <source>Open &amp;config.json…</source>
        <translation>config.json 열기(&amp;C)…</translation>
    </message>
    <message>
        <source>Catalogue of models</source>
        <translation>모델 카탈로그</translation>
    </message>
    <message>
        <source>Parameters by group</source>
        <translation>그룹별 파라미터</translation>
    </message>
    <message>
        <source>What it is made of</source>
        <translation>모델 구성</translation>
    </message>
    <message>
        <source>Nothing chosen yet.</source>
        <translation>아직 선택하지 않았습니다.</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt;: %2 parameters (%3) in %4 tensors</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;: 파라미터 %2개(%3), 텐서 %4개</translation>
    </message>
    <message>
        <source>&lt;br&gt;%1: %2 layers, hidden size %3, %4 heads (%5 for keys and values), vocabulary %6</source>
        <translation>&lt;br&gt;%1: %2층, 은닉 크기 %3, 헤드 %4(키와 값은 %5), 어휘 %6</translation>
    </message>
    <message>
        <source>assumed: %1</source>
        <translation>가정: %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::ParetoPlot</name>
    <message>
        <source>%1 plans</source>
        <translation>계획 %1건</translation>
    </message>
    <message>
        <source>Each plan that no other beats will be a point here.</source>
        <translation>다른 계획에 뒤지지 않는 계획이 여기에 점으로 표시됩니다.</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::PlanPage</name>
    <message>
        <source>Plan</source>
        <translation>계획</translation>
    </message>
    <message>
        <source>The files that run this plan</source>
        <translation>이 계획을 실행하는 파일</translation>
    </message>
    <message>
        <source>&amp;Copy the command line</source>
        <translation>명령줄 복사(&amp;C)</translation>
    </message>
    <message>
        <source>Save the &amp;job…</source>
        <translation>작업 저장(&amp;J)…</translation>
    </message>
    <message>
        <source>Save a &amp;report…</source>
        <translation>보고서 저장(&amp;R)…</translation>
    </message>
    <message>
        <source>&amp;Export these files…</source>
        <translation>이 파일들 내보내기(&amp;E)…</translation>
    </message>
    <message>
        <source>Take it along</source>
        <translation>가져가기</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>탐색</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::PlanTable</name>
    <message>
        <source>verdict</source>
        <translation>판정</translation>
    </message>
    <message>
        <source>each GPU</source>
        <translation>GPU당</translation>
    </message>
    <message>
        <source>upper bound</source>
        <translation>상한</translation>
    </message>
    <message>
        <source>to spare</source>
        <translation>여유</translation>
    </message>
    <message>
        <source>model states</source>
        <translation>모델 상태</translation>
    </message>
    <message>
        <source>each host</source>
        <translation>호스트당</translation>
    </message>
    <message>
        <source>NVMe of each node</source>
        <translation>노드당 NVMe</translation>
    </message>
    <message>
        <source>sent by each GPU in a step</source>
        <translation>GPU당 스텝당 전송량</translation>
    </message>
    <message>
        <source>time of a step</source>
        <translation>스텝 시간</translation>
    </message>
    <message>
        <source>tokens a second</source>
        <translation>초당 토큰 수</translation>
    </message>
    <message>
        <source>differs from the first plan</source>
        <translation>첫 계획과 다름</translation>
    </message>
    <message>
        <source> (this job)</source>
        <translation> (이 작업)</translation>
    </message>
    <message>
        <source>parameters, gradients and optimizer states between steps</source>
        <translation>스텝 사이의 파라미터, 그래디언트, 옵티마이저 상태</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::RankBars</name>
    <message>
        <source>GPU %1: %2</source>
        <translation>GPU %1: %2</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::SearchPanel</name>
    <message>
        <source>Plans by memory and time</source>
        <translation>메모리와 시간으로 본 계획</translation>
    </message>
    <message>
        <source>memory of each GPU</source>
        <translation>GPU당 메모리</translation>
    </message>
    <message>
        <source>seconds for a million tokens</source>
        <translation>백만 토큰당 초</translation>
    </message>
    <message>
        <source>&amp;Use the selected plan</source>
        <translation>선택한 계획 사용(&amp;U)</translation>
    </message>
    <message>
        <source>most tokens a second</source>
        <translation>초당 토큰 최대</translation>
    </message>
    <message>
        <source>least money</source>
        <translation>비용 최소</translation>
    </message>
    <message>
        <source>fewest GPUs</source>
        <translation>GPU 수 최소</translation>
    </message>
    <message>
        <source>least memory</source>
        <translation>메모리 최소</translation>
    </message>
    <message>
        <source>What is best</source>
        <translation>무엇을 최선으로 볼지</translation>
    </message>
    <message>
        <source>&amp;Search for the best plans</source>
        <translation>최선의 계획 찾기(&amp;S)</translation>
    </message>
    <message>
        <source>Ca&amp;ncel</source>
        <translation>취소(&amp;N)</translation>
    </message>
    <message>
        <source>Candidates settled</source>
        <translation>확인한 후보</translation>
    </message>
    <message>
        <source>Plans that no other beats</source>
        <translation>다른 계획에 지지 않는 계획</translation>
    </message>
    <message>
        <source>Plans</source>
        <translation>계획</translation>
    </message>
    <message>
        <source>Ruled out</source>
        <translation>제외됨</translation>
    </message>
    <message>
        <source>A search varies how one model is trained; this job does something else.</source>
        <translation>탐색은 한 모델의 학습 방법을 바꿔 봅니다. 이 작업은 다른 종류입니다.</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::SearchSession</name>
    <message>
        <source>each GPU</source>
        <translation>GPU당</translation>
    </message>
    <message>
        <source>step</source>
        <translation>스텝</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>plan</source>
        <translation>계획</translation>
    </message>
    <message>
        <source>candidates</source>
        <translation>후보 수</translation>
    </message>
    <message>
        <source>ruled out because</source>
        <translation>제외된 이유</translation>
    </message>
    <message>
        <source>%1 candidates; %2 of them are beaten by no other in time, memory and GPUs at once</source>
        <translation>후보 %1건. 그중 %2건은 시간, 메모리, GPU 수에서 동시에 지는 일이 없습니다</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TextLabel</name>
    <message>
        <source>&amp;Copy</source>
        <translation>복사(&amp;C)</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TimelineView</name>
    <message>
        <source>, layer %1 of %2</source>
        <translation>, 층 %1 / %2</translation>
    </message>
    <message>
        <source>, micro-batch %1 of %2</source>
        <translation>, 마이크로배치 %1 / %2</translation>
    </message>
    <message>
        <source> (the peak)</source>
        <translation> (피크)</translation>
    </message>
    <message>
        <source>peak %1</source>
        <translation>피크 %1</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::TrainingPage</name>
    <message>
        <source>Training</source>
        <translation>학습</translation>
    </message>
    <message>
        <source>How it is trained</source>
        <translation>학습 방법</translation>
    </message>
    <message>
        <source>DeepSpeed configuration</source>
        <translation>DeepSpeed 설정</translation>
    </message>
    <message>
        <source>Open &amp;ds_config.json…</source>
        <translation>ds_config.json 열기(&amp;D)…</translation>
    </message>
    <message>
        <source>&amp;Without it</source>
        <translation>사용 안 함(&amp;W)</translation>
    </message>
    <message>
        <source>None: the choices on the left say it all. Open or drop a file to use it as it is, with what is found in it listed here.</source>
        <translation>없음: 왼쪽의 선택이 전부입니다. 파일을 열거나 끌어다 놓으면 그대로 쓰고, 발견된 점을 여기에 보여줍니다.</translation>
    </message>
    <message>
        <source>Inside the job, with %1 keys at its top level.</source>
        <translation>작업 안에 있으며, 최상위 키는 %1개입니다.</translation>
    </message>
</context>
<context>
    <name>shardplan::gui::VerdictPage</name>
    <message>
        <source>Verdict</source>
        <translation>판정</translation>
    </message>
    <message>
        <source>Memory of the fullest GPU</source>
        <translation>가장 많이 쓰는 GPU의 메모리</translation>
    </message>
    <message>
        <source>Memory through the step</source>
        <translation>스텝 중 메모리</translation>
    </message>
    <message>
        <source>Memory of each GPU at its peak, and live tensors through the step</source>
        <translation>피크 시 GPU당 메모리와 스텝 중 살아 있는 텐서</translation>
    </message>
    <message>
        <source>Time of a step</source>
        <translation>스텝 시간</translation>
    </message>
    <message>
        <source>What if</source>
        <translation>바꿔 보기</translation>
    </message>
    <message>
        <source>Fixes</source>
        <translation>변경안</translation>
    </message>
    <message>
        <source>live tensors</source>
        <translation>살아 있는 텐서</translation>
    </message>
    <message>
        <source>peak</source>
        <translation>피크</translation>
    </message>
    <message>
        <source>at its end</source>
        <translation>종료 시</translation>
    </message>
    <message>
        <source>sent</source>
        <translation>전송</translation>
    </message>
    <message>
        <source>link</source>
        <translation>경로</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>용량</translation>
    </message>
    <message>
        <source>calls</source>
        <translation>횟수</translation>
    </message>
    <message>
        <source>standing</source>
        <translation>근거</translation>
    </message>
    <message>
        <source>what</source>
        <translation>내용</translation>
    </message>
    <message>
        <source>Parts</source>
        <translation>내역</translation>
    </message>
    <message>
        <source>Phases</source>
        <translation>단계</translation>
    </message>
    <message>
        <source>Traffic</source>
        <translation>통신</translation>
    </message>
    <message>
        <source>Rests on</source>
        <translation>근거</translation>
    </message>
    <message>
        <source>usable %1</source>
        <translation>사용 가능 %1</translation>
    </message>
</context>
</TS>
